// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/launch.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "aiter/attention/code_object.h"
#include "aiter/attention/problem/error.h"
#include "aiter/runtime/store/coming.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using kernels::LaunchArgs;
using kernels::LaunchTable;
using kernels::Row;

constexpr uint32_t kMinusInfinity = 0xff800000;  // as fp32
// Upstream's unpadded instances load this many bytes at a time.
constexpr int64_t kVectorBytes = 16;

// Zeroes a tensor: as few and as wide fills as its strides allow.
void zero(const Problem& p, const attn_tensor& t, const Extents& e, int64_t element,
          runtime::Driver& driver) {
  if (e.batch == 0 || e.seq == 0 || e.head_size == 0) return;
  std::vector<std::pair<int64_t, int64_t>> steps;  // stride, extent
  for (const auto& [stride, extent] :
       {std::pair(t.stride_batch, e.batch), std::pair(t.stride_seq, e.seq),
        std::pair(t.stride_head, e.heads)}) {
    if (extent > 1) steps.push_back({stride, extent});
  }
  std::sort(steps.begin(), steps.end());
  int64_t width = e.head_size;
  auto unmerged = steps.begin();
  for (; unmerged != steps.end() && unmerged->first == width; ++unmerged) {
    width *= unmerged->second;
  }
  steps.erase(steps.begin(), unmerged);
  steps.resize(3, {width, 1});

  for (int64_t i = 0; i < steps[2].second; ++i) {
    for (int64_t j = 0; j < steps[1].second; ++j) {
      char* data = static_cast<char*>(t.data) + (i * steps[2].first + j * steps[1].first) * element;
      driver.zero_rows(data, steps[0].first * element, width * element, steps[0].second, p.stream);
    }
  }
}

kernels::Features features_of(const Problem& p) {
  kernels::Features f = {};
  if (p.bias == ATTN_BIAS_ELEMENTWISE) {
    const attn_tensor& bias = p.bias_matrix;
    f.bias = bias.data;
    f.bias_stride_batch = bias.stride_batch;
    f.bias_stride_head = bias.stride_head;
    f.bias_stride_seq = bias.stride_seq;
  } else if (p.bias == ATTN_BIAS_ALIBI) {
    f.bias = p.alibi_slopes;
    f.bias_stride_seq = p.alibi_stride_batch;
  }
  f.logits_soft_cap = p.logits_soft_cap;
  f.p_drop = p.dropout_p;
  f.drop_seed = p.dropout_seed;
  f.drop_offset = p.dropout_offset;
  f.min_seqlen_q = p.min_seqlen_q;
  f.block_table = p.cache.block_table;
  f.block_table_stride = p.cache.block_table_stride;
  f.page_size = p.cache.page_size;
  f.seqlens_k = p.cache.seqlens_k;
  f.batch_index = p.cache.batch_index;
  f.pages = p.cache.entries;
  f.page_indptr = p.cache.page_indptr;
  f.page_indices = p.cache.page_indices;
  return f;
}

}  // namespace

namespace {

// Of a plan, for what is said while one of its kernels is compiled.
struct Kernels {
  const LaunchTable& table;
  const Plan& plan;
  int arch;
  const runtime::Store& store;

  // Those that the store has to make, but the one of the key.
  int to_be_made(const runtime::Digest& beside) const {
    std::set<runtime::Digest> made;
    for (const Step& step : plan) {
      const runtime::CodeObjectRef ref = code_object_ref(table, *table.object(*step.row, arch));
      if (ref.key == beside || (ref.plain && ref.plain().key == beside)) continue;
      for (const runtime::Store::Told& told : store.look(ref)) {
        if (!told.answer.has) continue;
        if (told.answer.is_made) made.insert(ref.key);
        break;
      }
    }
    return static_cast<int>(made.size());
  }
};

// Says it to the thread's compiles as long as it lives.
class Announced {
 public:
  explicit Announced(const Kernels& kernels) : before_(runtime::thread_coming()) {
    runtime::thread_coming() = {[](const void* context, const runtime::Digest& beside) {
                                  return static_cast<const Kernels*>(context)->to_be_made(beside);
                                },
                                &kernels};
  }
  ~Announced() { runtime::thread_coming() = before_; }
  Announced(const Announced&) = delete;
  Announced& operator=(const Announced&) = delete;

 private:
  const runtime::Coming before_;
};

}  // namespace

void Queue::launch(const Step& step, const LaunchArgs& args) {
  const Row& row = *step.row;
  const char* const name = table_.name(row).data();
  const kernels::MakeLaunch make_launch = table_.launch(row);
  if (!make_launch) {
    fail(Status::kInternal, name, " has launch code ", row.launch, ", which this build lacks: the ",
         "build mixes versions; build it anew");
  }
  alignas(16) unsigned char kernarg[kernels::kMostKernargSize];
  kernels::Launch made = {};
  made.kernarg = kernarg;
  const kernels::CodeObjectRow& object = *table_.object(row, arch_);
  made.work_items = object.block[0];
  make_launch(args, &made);
  // 0: not known, as no bytes were built: the store holds those that it gets against the host code.
  if (row.kernarg_size != 0 && made.kernarg_size != row.kernarg_size) {
    fail(Status::kInternal, name, " takes ", row.kernarg_size, " bytes of arguments, but its host ",
         "code makes ", made.kernarg_size, ": the build mixes versions; build it anew");
  }
  if (made.grid[0] == 0 || made.grid[1] == 0 || made.grid[2] == 0) return;
  const char* const symbol = table_.symbol(row).data();
  runtime::CodeObjectRef ref = code_object_ref(table_, object);
  ref.kernel = runtime::KernelFacts{symbol, made.kernarg_size, object.block[0]};
  const runtime::Function function = loader_.function(driver_, p_.device_id, ref, symbol);
  const runtime::KernelLaunch launch = {{made.grid[0], made.grid[1], made.grid[2]},
                                        {object.block[0], object.block[1], object.block[2]},
                                        made.dynamic_lds,
                                        made.kernarg,
                                        made.kernarg_size};
  driver_.launch(function, name, launch, p_.stream);
}

void Queue::zero(const attn_tensor& tensor, const Extents& extents) {
  attention::zero(p_, tensor, extents, dtype_size(p_.dtype), driver_);
}

LaunchArgs launch_args(const Problem& p) {
  LaunchArgs args = {};
  args.problem = p;
  args.problem.softmax_scale = static_cast<float>(score_scale(p));
  args.q = p.q, args.k = p.k, args.v = p.v, args.o = p.o, args.lse = p.lse;
  args.sink = p.sink;
  args.features = features_of(p);
  return args;
}

void require_alignment(const LaunchTable& table, const Problem& p, const Plan& plan) {
  const Row& row = *plan.main_row();
  for (const Operand& operand : p.pass->operands(p)) {
    if (operand.is_unaligned) continue;
    const auto element = operand.element_size(p);
    const int64_t whole = kVectorBytes / element;
    int64_t elements;
    if (operand.of_scores) {
      elements = checks_keys(row) ? 1 : whole;
    } else {
      const bool padded =
          operand.has_v_size ? row.traits.pad_head_size_v : row.traits.pad_head_size_qk;
      elements = padded ? row.head_size_alignment : whole;
    }
    if (elements <= 1) continue;
    const int64_t bytes = elements * element;
    const auto require = [&](bool holds, const char* field, int64_t value) {
      if (holds) return;
      fail(Status::kInvalidArgument, Field(concat(operand.name, ".", field)), " is ", value,
           ", but ", table.name(row), " loads ", bytes,
           " bytes at a time: data must be a multiple of ", bytes, " bytes and strides of ",
           elements, " elements; pass a contiguous copy");
    };
    const attn_tensor& t = p.*operand.tensor;
    const Extents& e = operand.extents;
    const auto data = static_cast<int64_t>(reinterpret_cast<uintptr_t>(t.data));
    require(data % bytes == 0, "data", data);
    require(e.batch <= 1 || t.stride_batch % elements == 0, "stride_batch", t.stride_batch);
    require(e.seq <= 1 || t.stride_seq % elements == 0, "stride_seq", t.stride_seq);
    require(e.heads <= 1 || t.stride_head % elements == 0, "stride_head", t.stride_head);
  }
}

void launch(const LaunchTable& table, const Problem& p, const Plan& plan, int arch,
            runtime::Driver& driver, runtime::Loader& loader) {
  const runtime::DeviceScope scope(driver, p.device_id);
  const Kernels kernels = {table, plan, arch, loader.store()};
  const Announced announced(kernels);
  Queue queue(table, p, arch, driver, loader);
  p.pass->launch(p, plan, &queue);
}

void fill_outputs(const Problem& p, runtime::Driver& driver) {
  const Operands operands = p.pass->operands(p);
  const std::vector<Array> arrays = p.pass->arrays(p);
  const auto is_written = [](const Operand& operand) { return operand.access == Access::kWritten; };
  const auto is_filled = [](const Array& a) {
    return a.is_output && a.data && a.factors[0] != 0 && a.factors[1] != 0 && a.factors[2] != 0;
  };
  if (std::none_of(operands.begin(), operands.end(), is_written) &&
      std::none_of(arrays.begin(), arrays.end(), is_filled)) {
    return;
  }
  const runtime::DeviceScope scope(driver, p.device_id);
  for (const Operand& operand : operands) {
    if (!is_written(operand)) continue;
    zero(p, p.*operand.tensor, operand.extents, operand.element_size(p), driver);
  }
  for (const Array& array : arrays) {
    if (!is_filled(array)) continue;
    const int64_t bytes = array.factors[0] * array.factors[1] * array.factors[2];
    driver.zero_rows(const_cast<void*>(array.data), bytes, bytes, 1, p.stream);
  }
  const int64_t rows = query_rows(p) * p.heads_q;
  if (p.pass->writes_lse && p.lse && rows != 0) {
    driver.fill_words(p.lse, kMinusInfinity, rows, p.stream);
  }
}

}  // namespace AITER_ATTN_NAMESPACE::attention
