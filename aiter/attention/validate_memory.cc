// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/validate_memory.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string_view>

#include "aiter/attention/error.h"
#include "aiter/attention/workspace.h"
#include "aiter/runtime/regions.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using runtime::kMostAddress;
using runtime::refuse_sharing;
using runtime::Region;

constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();

struct Dimension {
  const char* field;
  int64_t extent;
  int64_t stride;  // elements
};

// The dimensions along which a tensor is stepped through: those with more than one entry.
class Dimensions {
 public:
  Dimensions(const attn_tensor& t, const Extents& e) {
    add({"stride_batch", e.batch, t.stride_batch});
    add({"stride_seq", e.seq, t.stride_seq});
    add({"stride_head", e.heads, t.stride_head});
  }
  const Dimension* begin() const { return all_.data(); }
  const Dimension* end() const { return all_.data() + count_; }
  void sort_by_stride() {
    std::sort(all_.begin(), all_.begin() + count_, [](const Dimension& a, const Dimension& b) {
      return std::abs(a.stride) < std::abs(b.stride);
    });
  }

 private:
  void add(const Dimension& d) {
    if (d.extent > 1) all_[count_++] = d;
  }

  std::array<Dimension, 3> all_;
  size_t count_ = 0;
};

// What upstream's kernels compute in 32 bits: each stride, and the offsets within one head of one
// sequence of at most `rows` rows.
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

// All memory of a call, and which of it is written.
class Memory {
 public:
  explicit Memory(const Problem& p) : p_(p) {}

  void add(const char* name, bool is_output, const attn_tensor& t, const Dimensions& dimensions,
           int64_t head_size, size_t element_size) {
    const auto element = static_cast<int64_t>(element_size);
    Region region = {};
    region.name = name;
    for (const Dimension& d : dimensions) {
      const int64_t reach = d.stride * (d.extent - 1) * element;
      (reach < 0 ? region.begin : region.end) += reach;
      region.steps[region.step_count++] = {d.stride * element, d.extent};
    }
    add(region, is_output, t.data, head_size * element);
  }

  void add(const char* name, bool is_output, const void* data,
           std::initializer_list<int64_t> size) {
    int64_t bytes = 1;
    for (const int64_t factor : size) {
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
      add("cu_seqlens_q", false, p_.lent.cu_seqlens_q, {offsets, kNumber});
      add("cu_seqlens_k", false, p_.lent.cu_seqlens_k, {offsets, kNumber});
    }
    const attn_kvcache& cache = p_.cache;
    add("seqlens_k", false, p_.lent.seqlens_k, {batch, kNumber});
    add("batch_index", false, p_.lent.batch_index, {batch, kNumber});
    add("block_table", false, p_.lent.block_table, {batch, cache.block_table_stride, kNumber});
    add("page_indptr", false, p_.lent.page_indptr, {offsets, kNumber});
    // How many there are is known in host memory only.
    if (cache.page_indices && p_.device_type == ATTN_DEVICE_CPU) {
      add("page_indices", false, p_.lent.page_indices, {cache.page_indptr[batch], kNumber});
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

  // With that of another call, which may read the tensors that this one writes.
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
  // begin and end are of what the steps add to `first`.
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

  // Operands, lse, two cu_seqlens, workspace, slopes or two tables, random state, arrays of a
  // cache.
  static constexpr size_t kMost = 21;

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
    const size_t size = operand.element_size(p);
    if (reinterpret_cast<uintptr_t>(t.data) % size != 0) {
      refuse(concat(name, ".data"), t.data, "must be aligned to its elements' ", size, " bytes");
    }
  }
  const Dimensions dimensions(t, e);
  if (p.device_type != ATTN_DEVICE_CPU) {
    validate_gpu_strides(name, dimensions, t, std::min(e.seq, e.longest), e.head_size);
  }
  validate_reach(name, dimensions);
  if (operand.is_output) validate_no_overlap(name, dimensions, e.head_size);
  if (pointers == Pointers::kIgnored) return;
  memory->add(name, operand.is_output, t, dimensions, e.head_size, operand.element_size(p));
}

void validate_lse(const Problem& p) {
  if (reinterpret_cast<uintptr_t>(p.lse) % alignof(float) != 0) {
    refuse("lse", p.lse, "must be aligned to 4 bytes");
  }
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
  if (reinterpret_cast<uintptr_t>(p.alibi_slopes) % alignof(float) != 0) {
    refuse("alibi_slopes", p.alibi_slopes, "must be aligned to 4 bytes");
  }
  const int64_t last = (int64_t{p.batch} - 1) * p.alibi_stride_batch;
  memory->add("alibi_slopes", false, p.alibi_slopes, {last + p.heads_q, sizeof(float)});
}

void validate_rng_state(const Problem& p, Memory* memory) {
  if (p.dropout_p == 0) return;
  if (reinterpret_cast<uintptr_t>(p.rng_state) % alignof(uint64_t) != 0) {
    refuse("rng_state", static_cast<const void*>(p.rng_state), "must be aligned to 8 bytes");
  }
  memory->add("rng_state", false, p.rng_state, {2, sizeof(uint64_t)});
}

void add_rotary(const Problem& p, Memory* memory) {
  const auto element = static_cast<int64_t>(dtype_size(p.dtype));
  const int64_t pairs = p.rotary_size / 2;
  memory->add("rotary_cos", false, p.rotary_cos, {p.rotary_length, pairs, element});
  memory->add("rotary_sin", false, p.rotary_sin, {p.rotary_length, pairs, element});
}

// What lies in the workspace is contiguous over all heads; kernels address one sequence of it by
// 32-bit offsets in bytes, and step from sequence to sequence by 31-bit ones in elements.
void validate_addressable(const char* name, const Extents& e, int64_t element) {
  const int64_t most = std::numeric_limits<uint32_t>::max() / std::max<int64_t>(element, 2);
  const int64_t rows = std::min(e.seq, e.longest);
  if (rows > most / (e.heads * e.head_size)) {
    fail(Status::kInvalidArgument, name, " has ", rows, " rows of ", e.heads * e.head_size,
         " elements in a sequence, but a GPU kernel addresses ", most,
         " elements of it: split the heads over several calls");
  }
}

// Kernels step from part to part of a head's results by 32-bit offsets in bytes, of which some are
// used up to the next multiple of 4 parts, and from sequence to sequence by 31-bit ones in
// elements.
void validate_parts(const Problem& p) {
  const int64_t rows = is_group(p) ? p.total_q : p.seqlen_q;
  const int64_t row = int64_t{p.head_size_v} * static_cast<int64_t>(sizeof(float));
  const int64_t parts = (p.most_parts + 3) / 4 * 4;
  const int64_t most_of_head = kMaxInt32 / (parts * row);
  const int64_t most_of_all = kMaxInt32 / p.head_size_v / p.most_parts / p.heads_q;
  const int64_t most = std::min(most_of_head, most_of_all);
  if (rows > most) {
    refuse(is_group(p) ? "total_q" : "seqlen_q", rows, "must not exceed ", most, " with ",
           p.most_parts, " splits of the keys, whose results a GPU kernel addresses in 32 bits: ",
           "pass fewer queries at a time, or fewer splits");
  }
}

// Before dbias is summed: by strides of 31 bits, and the sum counts 32 bits of vectors.
void validate_dbias_sum(const Problem& p) {
  const Extents all = score_extents(p);
  const DbiasSum sum = dbias_sum(p);
  const attn_tensor& t = sum.dscores;
  int64_t most = std::min(all.seq, all.longest) * t.stride_seq;
  for (const Dimension& d : Dimensions(t, all)) most = std::max(most, d.stride);
  const int64_t all_rows = all.batch * all.seq * all.heads;
  if (most > kMaxInt32 || all_rows > kMaxInt32 || all_rows > kMaxInt32 * int64_t{8} / p.seqlen_k) {
    fail(Status::kInvalidArgument, "dbias, before it is summed, has ", all.batch, " x ", all.heads,
         " x ", all.seq, " x ", p.seqlen_k,
         " entries (batch, heads, queries, keys), too far apart ",
         "for a GPU kernel, which steps by ", kMaxInt32,
         " at most: split the batch or the heads over several calls");
  }
}

const char* workspace_question(Direction direction) {
  switch (direction) {
    case Direction::kForward:
      return "attn_fwd_workspace_size";
    case Direction::kBackward:
      return "attn_bwd_workspace_size";
    default:
      return "attn_kvcache_fwd_workspace_size";
  }
}

void validate_workspace(const Problem& p, Memory* memory) {
  if (p.device_type == ATTN_DEVICE_CPU || !has_work(p)) return;
  const uint64_t needed = workspace_size(p);
  if (needed == 0) return;
  if (p.workspace_size < needed) {
    refuse("workspace_size", p.workspace_size, "this problem needs ", needed, " bytes: ask ",
           workspace_question(p.direction));
  }
  if (!p.workspace) {
    refuse("workspace", "NULL", "this problem needs ", needed, " bytes of device memory");
  }
  if (reinterpret_cast<uintptr_t>(p.workspace) % kWorkspaceAlignment != 0) {
    refuse("workspace", p.workspace, "must be aligned to ", kWorkspaceAlignment, " bytes");
  }
  if (has_cache(p)) validate_parts(p);
  if (is_backward(p)) {
    if (p.dbias_sums) validate_dbias_sum(p);
    validate_addressable("dq, while it is summed in fp32,", query_extents(p, p.head_size_qk),
                         sizeof(float));
    if (p.heads_q != p.heads_k) {
      const auto element = static_cast<int64_t>(dtype_size(p.dtype));
      validate_addressable("dk, before the sum over shared heads,",
                           key_extents(p, p.heads_q, p.head_size_qk), element);
      validate_addressable("dv, before the sum over shared heads,",
                           key_extents(p, p.heads_q, p.head_size_v), element);
    }
  }
  constexpr uint64_t kMost = kMostAddress;
  memory->add("workspace", true, p.workspace, {static_cast<int64_t>(std::min(needed, kMost))});
}

void add_kept(const Problem& p, Memory* memory) {
  if (!p.kept && has_work(p)) {
    refuse("kept", "NULL", "this problem has ", p.heads_q, " heads of ", query_rows(p), " rows of ",
           p.seqlen_k, " bytes");
  }
  memory->add("kept", true, p.kept, {query_rows(p), p.heads_q, p.seqlen_k});
}

// All that the call reads and writes, each valid by itself. Without pointers: nothing.
Memory memory_of(const Problem& p, Pointers pointers) {
  const bool forward = !is_backward(p);
  Memory memory(p);
  validate_lse(p);
  for (const Operand& operand : Operands(p)) validate_operand(p, operand, pointers, &memory);
  validate_slopes(p, pointers, &memory);
  if (pointers == Pointers::kIgnored) return memory;
  if (has_rotary(p)) add_rotary(p, &memory);
  if (!forward && !p.lse && query_rows(p) > 0) {
    refuse("lse", "NULL", "backward needs the lse of forward");
  }
  if (!is_append(p)) validate_workspace(p, &memory);
  if (p.direction == Direction::kDropoutMask) add_kept(p, &memory);
  memory.add("lse", forward, p.lse, {query_rows(p), p.heads_q, sizeof(float)});
  validate_rng_state(p, &memory);
  memory.add_lengths();
  return memory;
}

void require_same(const char* name, const attn_tensor& appended, const attn_tensor& read) {
  if (std::memcmp(&appended, &read, sizeof(read)) == 0) return;
  refuse(concat("append.", name, ".data"), appended.data, "must be ", name, " of the call, ",
         read.data, ", with the same strides");
}

}  // namespace

void validate_memory(const Problem& p, Pointers pointers) {
  memory_of(p, pointers).validate_sharing();
}

void validate_appended(const Problem& append, const Problem& attention) {
  require_same("k", append.k, attention.k);
  require_same("v", append.v, attention.v);
  if (has_rotary(append)) require_same("q", append.q, attention.q);
  memory_of(append, Pointers::kRequired)
      .validate_sharing(memory_of(attention, Pointers::kRequired));
}

}  // namespace AITER_ATTN_NAMESPACE::attention
