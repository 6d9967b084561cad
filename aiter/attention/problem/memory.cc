// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/problem/memory.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "aiter/attention/problem/checks.h"
#include "aiter/attention/problem/operands.h"
#include "aiter/attention/problem/workspace.h"
#include "aiter/runtime/regions.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using runtime::kMostAddress;
using runtime::refuse_sharing;
using runtime::Region;

// Refuses numbers beyond those that upstream's kernels compute in 32 bits: each stride, and the
// offsets within one head of one sequence of at most `rows` rows.
void validate_gpu_strides(const char* name, const Dimensions& dimensions, const attn_tensor& t,
                          int64_t rows, int64_t head_size) {
  for (const Dimension& d : dimensions) {
    if (d.stride < 0 || d.stride > kMaxInt32) {
      refuse(concat(name, ".", d.field), d.stride, "must be from 0 to ", kMaxInt32,
             " elements on the GPU: pass a contiguous tensor, or a smaller batch");
    }
  }
  if (rows > 1 && (rows - 1) * t.stride_seq + head_size > kMaxInt32) {
    refuse(concat(name, ".stride_seq"), t.stride_seq, "over ", rows, " rows it exceeds the ",
           kMaxInt32, " elements that a GPU kernel can address in one sequence");
  }
}

void validate_reach(const char* name, const Dimensions& dimensions) {
  // Generous, and small enough that no sum of offsets in bytes overflows.
  constexpr int64_t kMaxOffset = std::numeric_limits<int64_t>::max() / 64;
  for (const Dimension& d : dimensions) {
    if (d.stride < -kMaxOffset / d.extent || d.stride > kMaxOffset / d.extent) {
      refuse(concat(name, ".", d.field), d.stride, "over ", d.extent,
             " entries it exceeds the address space");
    }
  }
}

// Sufficient for no two rows to share an element: sorted by stride, each dimension steps over all
// that lies within.
void validate_no_overlap(const char* name, Dimensions dimensions, int64_t head_size) {
  dimensions.sort_by_stride();
  int64_t span = head_size;
  for (const Dimension& d : dimensions) {
    const int64_t stride = std::abs(d.stride);
    if (stride < span) {
      refuse(concat(name, ".", d.field), d.stride, "rows of an output must not overlap: it must ",
             "be at least ", span);
    }
    span += stride * (d.extent - 1);
  }
}

// All memory of a pass, and which of it is written.
class Memory {
 public:
  explicit Memory(const Problem& p) : p_(p) {}

  void add(const char* name, bool is_output, const attn_tensor& t, const Dimensions& dimensions,
           int64_t head_size, int64_t element) {
    Region region = {};
    region.name = name;
    for (const Dimension& d : dimensions) {
      const int64_t reach = d.stride * (d.extent - 1) * element;
      (reach < 0 ? region.begin : region.end) += reach;
      region.steps[region.step_count++] = {d.stride * element, d.extent};
    }
    add(region, is_output, t.data, head_size * element);
  }

  void add(const char* name, bool is_output, const void* data, std::array<int64_t, 3> factors) {
    int64_t bytes = 1;
    for (const int64_t factor : factors) {
      if (__builtin_mul_overflow(bytes, factor, &bytes)) bytes = kMostAddress + 1;
    }
    if (!data || bytes == 0) return;
    Region region = {};
    region.name = name;
    add(region, is_output, data, bytes);
  }

  void add_lengths() {
    constexpr int64_t kNumber = sizeof(int32_t);
    const int64_t batch = p_.batch, offsets = batch + 1;
    if (is_group(p_)) {
      add("cu_seqlens_q", false, p_.lent.cu_seqlens_q, {offsets, kNumber, 1});
      add("cu_seqlens_k", false, p_.lent.cu_seqlens_k, {offsets, kNumber, 1});
    }
    add("seqused_q", false, p_.lent.seqused_q, {batch, kNumber, 1});
    add("seqused_k", false, p_.lent.seqused_k, {batch, kNumber, 1});
    add("cu_seqused_q", false, p_.lent.cu_seqused_q, {offsets, kNumber, 1});
    add("cu_seqused_k", false, p_.lent.cu_seqused_k, {offsets, kNumber, 1});
    const attn_kvcache& cache = p_.cache;
    add("seqlens_k", false, p_.lent.seqlens_k, {batch, kNumber, 1});
    add("batch_index", false, p_.lent.batch_index, {batch, kNumber, 1});
    add("block_table", false, p_.lent.block_table, {batch, cache.block_table_stride, kNumber});
    add("page_indptr", false, p_.lent.page_indptr, {offsets, kNumber, 1});
    // Their number is known in host memory only.
    if (cache.page_indices && p_.device_type == ATTN_DEVICE_CPU) {
      add("page_indices", false, p_.lent.page_indices, {cache.page_indptr[batch], kNumber, 1});
    }
  }

  void validate_sharing() const {
    for (size_t i = 0; i < count_; ++i) {
      for (size_t j = 0; is_output_[i] && j < count_; ++j) {
        if (j == i || (is_output_[j] && j < i)) continue;  // compared before
        refuse_sharing(regions_[i], regions_[j]);
      }
    }
  }

  // With that of another pass, which may read the tensors that this one writes.
  void validate_sharing(const Memory& next) const {
    for (size_t i = 0; i < count_; ++i) {
      for (size_t j = 0; j < next.count_; ++j) {
        if (!is_output_[i] && !next.is_output_[j]) continue;
        const Region &one = regions_[i], &other = next.regions_[j];
        if (std::string_view(one.name) == other.name) continue;
        is_output_[i] ? refuse_sharing(one, other) : refuse_sharing(other, one);
      }
    }
  }

 private:
  // begin and end are those of the steps from `first` on.
  void add(Region region, bool is_output, const void* data, int64_t width) {
    const auto first = reinterpret_cast<uintptr_t>(data);
    region.first = static_cast<int64_t>(first);
    region.width = width;
    if (first > kMostAddress || width > kMostAddress || region.first + region.begin < 0 ||
        region.first + region.end + width > kMostAddress) {
      fail(Status::kInvalidArgument, Field(region.name), " at ", data,
           " exceeds the address space: check its pointer, its strides and its sizes");
    }
    region.begin += region.first;
    region.end += region.first + width;
    is_output_[count_] = is_output;
    regions_[count_++] = region;
  }

  // Operands, lse, two cu_seqlens, two of used rows, workspace, slopes or two tables, sink, its
  // gradient, random state, arrays of a cache.
  static constexpr size_t kMost = 25;

  const Problem& p_;
  std::array<Region, kMost> regions_;
  std::array<bool, kMost> is_output_;
  size_t count_ = 0;
};

void validate_operand(const Problem& p, const Operand& operand, Pointers pointers, Memory* memory) {
  const char* const name = operand.name;
  const attn_tensor& t = p.*operand.tensor;
  const Extents& e = operand.extents;
  // No entry, nothing is read or written.
  if (e.batch == 0 || e.seq == 0 || e.head_size == 0) return;
  if (pointers == Pointers::kIgnored && !t.data) return;  // not filled in yet
  if (pointers == Pointers::kRequired) {
    if (!t.data) refuse(concat(name, ".data"), "NULL", "the tensor has entries");
    const int64_t size = operand.element_size(p);
    if (reinterpret_cast<uintptr_t>(t.data) % size != 0) {
      refuse(concat(name, ".data"), t.data, "must be aligned to its elements' ", size, " bytes");
    }
  }
  const Dimensions dimensions(t, e);
  if (p.device_type != ATTN_DEVICE_CPU) {
    validate_gpu_strides(name, dimensions, t, std::min(e.seq, e.longest), e.head_size);
  }
  validate_reach(name, dimensions);
  if (operand.is_output()) validate_no_overlap(name, dimensions, e.head_size);
  if (pointers == Pointers::kIgnored) return;
  memory->add(name, operand.is_output(), t, dimensions, e.head_size, operand.element_size(p));
}

void validate_lse(const Problem& p) {
  require_aligned("lse", p.lse, alignof(float));
  if (p.device_type != ATTN_DEVICE_CPU && p.batch > 1 &&
      int64_t{p.heads_q} * p.seqlen_q > kMaxInt32) {
    refuse("heads_q * seqlen_q", int64_t{p.heads_q} * p.seqlen_q, "must not exceed ", kMaxInt32,
           " on the GPU: pass the batch entries one by one");
  }
}

void validate_slopes(const Problem& p, Pointers pointers, Memory* memory) {
  if (p.bias != ATTN_BIAS_ALIBI) return;
  constexpr int64_t kFloat = sizeof(float);
  const bool on_cpu = p.device_type == ATTN_DEVICE_CPU;
  const int64_t most = on_cpu ? kMostAddress / kFloat / (int64_t{p.batch} + 1) : kMaxInt32;
  if (p.alibi_stride_batch < 0 || p.alibi_stride_batch > most) {
    refuse("alibi_stride_batch", p.alibi_stride_batch, "must be from 0 to ", most, " elements");
  }
  if (pointers == Pointers::kIgnored || p.batch == 0) return;
  if (!p.alibi_slopes) {
    refuse("alibi_slopes", "NULL", "ALiBi needs ", p.heads_q,
           " fp32 slopes in the memory of the device");
  }
  require_aligned("alibi_slopes", p.alibi_slopes, alignof(float));
  const int64_t last = (int64_t{p.batch} - 1) * p.alibi_stride_batch;
  memory->add("alibi_slopes", false, p.alibi_slopes, {last + p.heads_q, kFloat, 1});
}

void validate_sink(const Problem& p, Memory* memory) {
  require_aligned("sink", p.sink, alignof(float));
  memory->add("sink", false, p.sink, {p.heads_q, sizeof(float), 1});
}

void validate_rng_state(const Problem& p, Memory* memory) {
  if (p.dropout_p == 0) return;
  require_aligned("rng_state", p.rng_state, alignof(uint64_t));
  memory->add("rng_state", false, p.rng_state, {2, sizeof(uint64_t), 1});
}

void validate_workspace(const Problem& p, Memory* memory) {
  if (p.device_type == ATTN_DEVICE_CPU || !p.pass->has_work(p)) return;
  const uint64_t needed = p.pass->workspace_size(p);
  if (needed == 0) return;
  if (p.workspace_size < needed) {
    refuse("workspace_size", p.workspace_size, "this problem needs ", needed, " bytes: ask ",
           p.pass->workspace_function);
  }
  if (!p.workspace) {
    refuse("workspace", "NULL", "this problem needs ", needed, " bytes of device memory");
  }
  require_aligned("workspace", p.workspace, kWorkspaceAlignment);
  p.pass->validate_workspace(p);
  constexpr uint64_t kMost = kMostAddress;
  memory->add("workspace", true, p.workspace,
              {static_cast<int64_t>(std::min(needed, kMost)), 1, 1});
}

// All that the call reads and writes, each valid by itself. Without pointers: nothing.
Memory memory_of(const Problem& p, Pointers pointers) {
  Memory memory(p);
  validate_lse(p);
  for (const Operand& operand : p.pass->operands(p)) {
    validate_operand(p, operand, pointers, &memory);
  }
  validate_slopes(p, pointers, &memory);
  if (pointers == Pointers::kIgnored) return memory;
  validate_workspace(p, &memory);
  for (const Array& a : p.pass->arrays(p)) memory.add(a.name, a.is_output, a.data, a.factors);
  memory.add("lse", p.pass->writes_lse, p.lse, {query_rows(p), p.heads_q, sizeof(float)});
  validate_sink(p, &memory);
  validate_rng_state(p, &memory);
  memory.add_lengths();
  return memory;
}

}  // namespace

void validate_memory(const Problem& p, Pointers pointers) {
  memory_of(p, pointers).validate_sharing();
}

void validate_apart(const Problem& first, const Problem& next) {
  memory_of(first, Pointers::kRequired).validate_sharing(memory_of(next, Pointers::kRequired));
}

}  // namespace AITER_ATTN_NAMESPACE::attention
