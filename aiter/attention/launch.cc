// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/launch.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "aiter/attention/code_object.h"
#include "aiter/attention/error.h"
#include "aiter/attention/workspace.h"
#include "aiter/runtime/float8.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using kernels::Kind;
using kernels::LaunchArgs;
using kernels::LaunchTable;
using kernels::Row;

constexpr uint32_t kMinusInfinity = 0xff800000;  // as fp32
// Upstream's unpadded instances load this many bytes at a time.
constexpr int64_t kVectorBytes = 16;

// Zeroes a tensor: as few and as wide fills as its strides allow.
void zero(const Problem& p, const attn_tensor& t, const Extents& e, runtime::Driver& driver) {
  if (e.batch == 0 || e.seq == 0 || e.head_size == 0) return;
  const int64_t element = static_cast<int64_t>(dtype_size(p.dtype));
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

template <typename T>
T* at(void* base, const WorkspacePiece& piece) {
  return reinterpret_cast<T*>(static_cast<char*>(base) + piece.offset);
}

attn_tensor contiguous(void* data, const Extents& e) {
  return {data, e.seq * e.heads * e.head_size, e.heads * e.head_size, e.head_size};
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
  if (p.bias_grad) {
    f.dbias = p.dbias.data;
    f.dbias_stride_batch = p.dbias.stride_batch;
    f.dbias_stride_head = p.dbias.stride_head;
    f.dbias_stride_seq = p.dbias.stride_seq;
  }
  f.logits_soft_cap = p.logits_soft_cap;
  f.p_drop = p.dropout_p;
  f.drop_seed = p.dropout_seed;
  f.drop_offset = p.dropout_offset;
  f.min_seqlen_q = p.min_seqlen_q;
  if (is_fp8(p.dtype)) {
    // Upstream's kernels round exp(score - greatest score), which is 1 at most, to fp8: as a
    // multiple that uses all of its range. What they sum is not divided by that again.
    f.scale_p = runtime::fp8_largest(p.dtype == ATTN_DTYPE_FP8_E4M3 ? runtime::Fp8::kE4m3
                                                                    : runtime::Fp8::kE4m3Fnuz);
    f.scale_o = static_cast<float>(output_scale(p) / f.scale_p);
  }
  f.dq_acc_stride_split = query_rows(p) * p.heads_q * p.head_size_qk;
  f.block_table = p.cache.block_table;
  f.block_table_stride = p.cache.block_table_stride;
  f.page_size = p.cache.page_size;
  f.seqlens_k = p.cache.seqlens_k;
  f.batch_index = p.cache.batch_index;
  f.pages = p.cache.entries;
  f.page_indptr = p.cache.page_indptr;
  f.page_indices = p.cache.page_indices;
  f.seqlen_new = p.seqlen_new;
  f.k_new = p.k_new;
  f.v_new = p.v_new;
  f.rotary_size = p.rotary_size;
  f.rotary_cos = p.rotary_cos;
  f.rotary_sin = p.rotary_sin;
  return f;
}

// What the launch code of all kinds reads. With shared key heads dk and dv lie in the workspace,
// with heads_q heads, until they are summed.
LaunchArgs make_args(const Problem& p, const Plan& plan, const BwdWorkspace& layout) {
  LaunchArgs args = {};
  args.problem = p;
  args.problem.softmax_scale = static_cast<float>(score_scale(p));
  args.q = p.q, args.k = p.k, args.v = p.v, args.o = p.o, args.lse = p.lse, args.kept = p.kept;
  if (plan.spare_lse) args.lse = static_cast<float*>(p.workspace);
  args.features = features_of(p);
  // A mask whose windows are open: ALiBi asks which diagonal it has.
  if (p.mask == ATTN_MASK_NONE && p.bias == ATTN_BIAS_ALIBI) {
    args.problem.mask = ATTN_MASK_BOTTOM_RIGHT;
  }
  if (has_cache(p) && !p.cu_seqlens_k) {
    // Kernels in group mode add the start of a sequence to k and v, which in pages they do not use.
    args.problem.cu_seqlens_k = p.cu_seqlens_q;
  }
  if (is_append(p) && !has_rotary(p)) {
    // No query is touched; a workgroup is for a head of q, of which one per key head will do.
    args.problem.seqlen_q = 0;
    args.problem.heads_q = p.heads_k;
  }
  if (!is_backward(p)) return args;
  args.dout = p.dout, args.dq = p.dq, args.dk = p.dk, args.dv = p.dv;
  args.delta = at<float>(p.workspace, layout.delta);
  args.dq_acc = at<float>(p.workspace, layout.dq_acc);
  if (p.dbias_sums) {
    const attn_tensor dscores = dbias_sum(p).dscores;
    args.features.dbias = at<void>(p.workspace, layout.dscores);
    args.features.dbias_stride_batch = dscores.stride_batch;
    args.features.dbias_stride_head = dscores.stride_head;
    args.features.dbias_stride_seq = dscores.stride_seq;
  }
  if (p.heads_q != p.heads_k) {
    args.dk =
        contiguous(at<void>(p.workspace, layout.dk), key_extents(p, p.heads_q, p.head_size_qk));
    args.dv =
        contiguous(at<void>(p.workspace, layout.dv), key_extents(p, p.heads_q, p.head_size_v));
  }
  return args;
}

// What is summed after the main kernel, in this order; each as its launch code reads it.
std::vector<LaunchArgs> sums_of(const Problem& p, const LaunchArgs& main) {
  std::vector<LaunchArgs> sums;
  if (!is_backward(p)) return sums;
  if (p.heads_q != p.heads_k) {
    sums.assign(2, main);
    sums[0].sum_from = main.dk, sums[0].sum_to = p.dk, sums[0].sum_head_size = p.head_size_qk;
    sums[1].sum_from = main.dv, sums[1].sum_to = p.dv, sums[1].sum_head_size = p.head_size_v;
  }
  if (p.dbias_sums) {
    // The kernel sums over the query heads of a key head. Here all scores that make one of dbias
    // are such heads, and the keys are a head's size.
    const DbiasSum sum = dbias_sum(p);
    LaunchArgs& args = sums.emplace_back(main);
    args.problem.mode = ATTN_MODE_BATCH;
    args.problem.batch = static_cast<int32_t>(sum.kept.batch);
    args.problem.seqlen_k = static_cast<int32_t>(sum.kept.seq);
    args.problem.heads_k = static_cast<int32_t>(sum.kept.heads);
    args.problem.heads_q = static_cast<int32_t>(sum.kept.heads * sum.group);
    args.sum_from = {main.features.dbias, 0, 0, 0};
    args.sum_to = p.dbias;
    args.sum_head_size = p.seqlen_k;
  }
  return sums;
}

void launch_row(const LaunchTable& table, const Row& row, const LaunchArgs& args, int arch,
                runtime::Driver& driver, runtime::Loader& loader) {
  const char* const name = table.name(row).data();
  const kernels::MakeLaunch make_launch = table.launch(row);
  if (!make_launch) {
    fail(Status::kInternal, name, " has launch code ", row.launch, ", which this build lacks: the ",
         "build mixes versions; build it anew");
  }
  alignas(16) unsigned char kernarg[kernels::kMostKernargSize];
  kernels::Launch made = {};
  made.kernarg = kernarg;
  make_launch(args, &made);
  // 0: not known, as no bytes were built; whether there are any by now is the store's matter.
  if (row.kernarg_size != 0 && made.kernarg_size != row.kernarg_size) {
    fail(Status::kInternal, name, " takes ", row.kernarg_size, " bytes of arguments, but its host ",
         "code makes ", made.kernarg_size, ": the build mixes versions; build it anew");
  }
  if (made.grid[0] == 0 || made.grid[1] == 0 || made.grid[2] == 0) return;
  const kernels::CodeObjectRow& object = *table.object(row, arch);
  const runtime::Function function =
      loader.function(driver, args.problem.device_id, code_object_ref(table, object), name);
  const runtime::KernelLaunch launch = {{made.grid[0], made.grid[1], made.grid[2]},
                                        {object.block[0], object.block[1], object.block[2]},
                                        made.dynamic_lds,
                                        made.kernarg,
                                        made.kernarg_size};
  driver.launch(function, name, launch, args.problem.stream);
}

}  // namespace

void require_alignment(const LaunchTable& table, const Problem& p, const Plan& plan) {
  const Row& row = *plan.main_row();
  for (const Operand& operand : Operands(p)) {
    // The kernel that sums takes any.
    if (p.dbias_sums && operand.tensor == &Problem::dbias) continue;
    const auto element = static_cast<int64_t>(operand.element_size(p));
    const int64_t whole = kVectorBytes / element;
    int64_t elements;
    if (operand.of_scores) {
      elements = row.traits.pad_seqlen_k ? 1 : whole;
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
  const BwdWorkspace layout = is_backward(p) ? bwd_workspace(p) : BwdWorkspace{};
  LaunchArgs args = make_args(p, plan, layout);
  if (plan.splits != 0) {
    const KvcacheWorkspace parts = kvcache_workspace(p, plan.splits);
    args.features.splits = plan.splits;
    args.features.o_acc = at<float>(p.workspace, parts.o_acc);
    args.features.lse_acc = at<float>(p.workspace, parts.lse_acc);
  }
  const runtime::DeviceScope scope(driver, p.device_id);
  const std::vector<LaunchArgs> sums = sums_of(p, args);
  size_t summed = 0;
  for (const Step& step : plan) {
    if (step.kind == Kind::kBwdDqDkDv) {
      // Tiles that the mask leaves out are not written.
      if (p.bias_grad) {
        const kernels::Features& f = args.features;
        const attn_tensor dscores = {f.dbias, f.dbias_stride_batch, f.dbias_stride_seq,
                                     f.dbias_stride_head};
        zero(p, dscores, score_extents(p), driver);
      }
      driver.fill_words(args.dq_acc, 0, layout.dq_acc.size / sizeof(float), p.stream);
    } else if (step.kind == Kind::kSumHeads) {
      launch_row(table, *step.row, sums[summed++], arch, driver, loader);
      continue;
    }
    launch_row(table, *step.row, args, arch, driver, loader);
  }
}

void fill_outputs(const Problem& p, runtime::Driver& driver) {
  if (is_append(p)) return;  // of a cache nothing is written
  const runtime::DeviceScope scope(driver, p.device_id);
  for (const Operand& operand : Operands(p)) {
    if (operand.is_output) zero(p, p.*operand.tensor, operand.extents, driver);
  }
  const int64_t rows = query_rows(p) * p.heads_q;
  if (!is_backward(p) && p.lse && rows != 0) {
    driver.fill_words(p.lse, kMinusInfinity, rows, p.stream);
  }
}

}  // namespace AITER_ATTN_NAMESPACE::attention
