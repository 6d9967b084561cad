// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/passes/backward/backward.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "aiter/attention/dispatch.h"
#include "aiter/attention/launch.h"
#include "aiter/attention/passes/backward/asm.h"
#include "aiter/attention/passes/backward/compute.h"
#include "aiter/attention/problem/checks.h"
#include "aiter/attention/problem/workspace.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using kernels::Kind;
using kernels::LaunchArgs;
using kernels::LaunchTable;

constexpr KernelSequence kKernels = {
    Kind::kBwdDqDkDv, {Kind::kBwdDotDoO, Kind::kBwdDqDkDv, Kind::kBwdConvertDq}, 3};

// Key heads that several query heads have in common: their dk and dv are sums.
bool shares_keys(const Problem& p) { return p.heads_q != p.heads_k; }

// The layout of every score's gradient in the workspace until it is summed: contiguous, first the
// dimensions that dbias keeps of batch, queries and heads, in this order, then those that it is
// summed over, then keys.
struct DbiasSum {
  attn_tensor dscores;  // without data
  Extents kept;         // of dbias
  int64_t group;        // scores that make one of dbias
};

DbiasSum dbias_sum(const Problem& p) {
  const Extents all = score_extents(p);
  DbiasSum sum = {{}, dbias_extents(p), 1};
  int64_t step = p.seqlen_k;
  const auto place = [&](int64_t* stride, attn_dbias_sum what, bool summed, int64_t extent) {
    if (sums_dbias(p, what) != summed) return;
    *stride = step;
    step *= extent;
    if (summed) sum.group *= extent;
  };
  for (const bool summed : {true, false}) {
    place(&sum.dscores.stride_head, ATTN_DBIAS_SUM_HEADS, summed, all.heads);
    place(&sum.dscores.stride_seq, ATTN_DBIAS_SUM_QUERIES, summed, all.seq);
    place(&sum.dscores.stride_batch, ATTN_DBIAS_SUM_BATCH, summed, all.batch);
  }
  return sum;
}

struct Workspace {
  WorkspacePiece delta;  // fp32 [batch, heads_q, seqlen_q] or [heads_q, total_q]
  // fp32 [most_parts, batch, seqlen_q, heads_q, head_size_qk] or [most_parts, total_q, ...]; where
  // AITER's kernels add to it, [batch, heads_q, seqlen_q, head_size_qk] or [heads_q, total_q, ...]
  WorkspacePiece dq_acc;
  WorkspacePiece dk;  // dtype, heads_q heads; empty where no keys are shared
  WorkspacePiece dv;
  WorkspacePiece dscores;  // dtype, in DbiasSum's layout; empty where dbias is not summed
  uint64_t size;
};

Workspace workspace_of(const Problem& p) {
  constexpr int64_t kFloat = sizeof(float);
  const int64_t queries = query_rows(p);
  const int64_t keys = key_rows(p);
  const int64_t element = dtype_size(p.dtype);
  const int64_t expanded = shares_keys(p) ? p.heads_q : 0;

  WorkspaceLayout layout;
  Workspace w = {};
  // Without queries or without keys nothing is computed: the gradients are zero.
  if (!has_rows(p)) return w;
  w.delta = layout.add({queries, p.heads_q, kFloat});
  w.dq_acc = layout.add({p.most_parts, queries, p.heads_q, p.head_size_qk, kFloat});
  w.dk = layout.add({keys, expanded, p.head_size_qk, element});
  w.dv = layout.add({keys, expanded, p.head_size_v, element});
  w.dscores = layout.add({p.dbias_sums ? queries : 0, p.heads_q, p.seqlen_k, element});
  w.size = layout.size();
  return w;
}

attn_tensor contiguous(void* data, const Extents& e) {
  return {data, e.seq * e.heads * e.head_size, e.heads * e.head_size, e.head_size};
}

void set_dbias(const attn_tensor& t, kernels::Features* f) {
  f->dbias = t.data;
  f->dbias_stride_batch = t.stride_batch;
  f->dbias_stride_head = t.stride_head;
  f->dbias_stride_seq = t.stride_seq;
}

// The gradient of every score, as the main kernel writes it.
attn_tensor dscores_of(const Problem& p, const Workspace& workspace) {
  if (!p.dbias_sums) return p.dbias_matrix;
  attn_tensor dscores = dbias_sum(p).dscores;
  dscores.data = workspace.dscores.in<void>(p.workspace);
  return dscores;
}

// Shared dk and dv lie in the workspace, with heads_q heads, until they are summed.
LaunchArgs args_of(const Problem& p, const Workspace& workspace) {
  LaunchArgs args = launch_args(p);
  args.dout = p.dout, args.dq = p.dq, args.dk = p.dk, args.dv = p.dv;
  args.delta = workspace.delta.in<float>(p.workspace);
  args.dq_acc = workspace.dq_acc.in<float>(p.workspace);
  args.dsink = p.dsink;
  args.features.dq_acc_stride_split = query_rows(p) * p.heads_q * p.head_size_qk;
  if (p.bias_grad) set_dbias(dscores_of(p, workspace), &args.features);
  if (shares_keys(p)) {
    args.dk =
        contiguous(workspace.dk.in<void>(p.workspace), key_extents(p, p.heads_q, p.head_size_qk));
    args.dv =
        contiguous(workspace.dv.in<void>(p.workspace), key_extents(p, p.heads_q, p.head_size_v));
  }
  return args;
}

// Summed after the main kernel, in this order; each as its launch code reads it.
std::vector<LaunchArgs> sums_of(const Problem& p, const LaunchArgs& main) {
  std::vector<LaunchArgs> sums;
  if (shares_keys(p)) {
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
    args.sum_to = p.dbias_matrix;
    args.sum_head_size = p.seqlen_k;
  }
  return sums;
}

// A piece of the workspace is contiguous over all heads; kernels address one sequence of it by
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

class Backward final : public Pass {
 public:
  constexpr Backward() : Pass("backward", "attn_bwd_workspace_size") {}

  Operands operands(const Problem& p) const override {
    const Extents query = query_extents(p, p.head_size_qk);
    const Extents key = key_extents(p, p.heads_k, p.head_size_qk);
    const Extents value = key_extents(p, p.heads_k, p.head_size_v);
    const Extents out = query_extents(p, p.head_size_v);
    Operands all;
    all.add({"q", &Problem::q, query, false, Access::kRead});
    all.add({"k", &Problem::k, key, false, Access::kRead});
    all.add({"v", &Problem::v, value, true, Access::kRead});
    all.add({"o", &Problem::o, out, true, Access::kRead});
    all.add({"dout", &Problem::dout, out, true, Access::kRead});
    all.add({"dq", &Problem::dq, query, false, Access::kWritten});
    all.add({"dk", &Problem::dk, key, false, Access::kWritten});
    all.add({"dv", &Problem::dv, value, true, Access::kWritten});
    all.add_bias(p);
    if (p.bias_grad) {
      // The kernel that sums takes any alignment.
      all.add({"dbias", &Problem::dbias_matrix, dbias_extents(p), false, Access::kWritten, true,
               p.dbias_sums != 0});
    }
    return all;
  }

  bool has_work(const Problem& p) const override { return has_rows(p); }

  std::vector<Array> arrays(const Problem& p) const override {
    return {{"dsink", true, p.dsink, {p.heads_q, sizeof(float), 1}}};
  }

  bool chooses_provider() const override { return true; }
  bool takes_padding() const override { return true; }

  uint64_t workspace_size(const Problem& p) const override { return workspace_of(p).size; }

  void validate_workspace(const Problem& p) const override {
    if (p.dbias_sums) validate_dbias_sum(p);
    validate_addressable("dq, while it is summed in fp32,", query_extents(p, p.head_size_qk),
                         sizeof(float));
    if (!shares_keys(p)) return;
    const auto element = dtype_size(p.dtype);
    validate_addressable("dk, before the sum over shared heads,",
                         key_extents(p, p.heads_q, p.head_size_qk), element);
    validate_addressable("dv, before the sum over shared heads,",
                         key_extents(p, p.heads_q, p.head_size_v), element);
  }

  void ask(const Problem& p, Request* request) const override {
    request->traits.bias_grad = p.bias_grad;
    request->traits.deterministic = p.deterministic;
    request->sum_heads = shares_keys(p);
    request->sum_bias = p.dbias_sums != 0;
    request->sink = p.dsink != nullptr;
    ask_asm_backward(p, request);
  }

  uint32_t hazards(const Request& request, const kernels::Row& row) const override {
    return asm_backward_hazards(request, row);
  }

  // Shared key heads make two sums at the end: of dk, and of dv. A dbias that is summed makes one.
  Plan plan(const LaunchTable& table, const Request& request) const override {
    Plan plan = plan_by_provider(
        request, [&] { return plan_asm_backward(table, request); },
        [&] { return plan_kernels(table, kKernels, request); });
    if (request.sink) plan.add(Kind::kSinkGrad, pick_kernel(table, Kind::kSinkGrad, request));
    const int sums = (request.sum_heads ? 2 : 0) + (request.sum_bias ? 1 : 0);
    if (sums == 0) return plan;
    const kernels::Row* const sum_heads = pick_kernel(table, Kind::kSumHeads, request);
    for (int i = 0; i < sums; ++i) plan.add(Kind::kSumHeads, sum_heads);
    return plan;
  }

  // Sums of dq, one per tile of keys, where they are put together in a fixed order.
  int64_t parts(const Request& request, const Plan& plan) const override {
    const kernels::Row* const main = plan.main_row();
    if (!main || main->tile_seqlen_k == 0) return 0;
    if (!plan.row(Kind::kBwdConvertDq)) return 0;  // dq is written, without a sum of its own
    // Upstream's kernels read two sums for a sequence without keys: docs/races.md, N.
    const int64_t least = request.traits.group_mode ? 2 : 1;
    return std::max(least, tiles(request.seqlen_k, main->tile_seqlen_k));
  }

  // Where no instance serves, dispatch will say so.
  int64_t most_parts(const LaunchTable& table, const Problem& p) const override {
    if (!p.deterministic || p.device_type == ATTN_DEVICE_CPU || !has_work(p)) return 1;
    return std::max<int64_t>(1, attention::most_parts(table, make_request(p, {})));
  }

  void launch(const Problem& p, const Plan& plan, Queue* queue) const override {
    const Workspace workspace = workspace_of(p);
    LaunchArgs args = args_of(p, workspace);
    args.dq_acc_by_head = is_asm_backward(plan.main);
    const std::vector<LaunchArgs> sums = sums_of(p, args);
    size_t summed = 0;
    for (const Step& step : plan) {
      if (step.kind == plan.main) {
        // Tiles that the mask leaves out are not written.
        if (p.bias_grad) queue->zero(dscores_of(p, workspace), score_extents(p));
        if (plan.row(Kind::kBwdConvertDq)) {
          queue->zero(args.dq_acc, workspace.dq_acc.size / sizeof(float));
        }
        if (queue->has_hazard(step, kernels::Hazard::kNoQueries)) {
          queue->zero(args.dk, key_extents(p, p.heads_q, p.head_size_qk));
          queue->zero(args.dv, key_extents(p, p.heads_q, p.head_size_v));
        }
      }
      queue->launch(step, step.kind == Kind::kSumHeads ? sums[summed++] : args);
    }
  }

  void compute(const Problem& p) const override { compute_backward(p); }
};

}  // namespace

const Pass& backward_pass() {
  static constexpr Backward pass;
  return pass;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
