// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/passes/kvcache/kvcache.h"

#include <algorithm>
#include <cstdint>

#include "aiter/attention/dispatch.h"
#include "aiter/attention/launch.h"
#include "aiter/attention/passes/kvcache/splits.h"
#include "aiter/attention/problem/checks.h"
#include "aiter/attention/problem/workspace.h"
#include "aiter/attention/reference/forward.h"
#include "kernels/archs/archs.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using kernels::Kind;
using kernels::LaunchTable;
using kernels::Row;

constexpr KernelSequence kSplitKeys = {
    Kind::kFwdSplitkv, {Kind::kFwdSplitkv, Kind::kFwdSplitkvCombine}, 2};
constexpr KernelSequence kPageList = {Kind::kFwdBatchPrefill, {Kind::kFwdBatchPrefill}, 1};
constexpr KernelSequence kPagedKeys = {Kind::kFwdPagedkv, {Kind::kFwdPagedkv}, 1};

// Of keys in parts: fp32 [batch, heads_q, splits, seqlen_q] or [heads_q, splits, total_q], and
// o_acc with head_size_v. Empty where there are 0.
struct Workspace {
  WorkspacePiece lse_acc;
  WorkspacePiece o_acc;
  uint64_t size;
};

Workspace workspace_of(const Problem& p, int64_t splits) {
  constexpr int64_t kFloat = sizeof(float);
  const int64_t queries = query_rows(p);
  WorkspaceLayout layout;
  Workspace w = {};
  w.lse_acc = layout.add({splits, queries, p.heads_q, kFloat});
  w.o_acc = layout.add({splits, queries, p.heads_q, p.head_size_v, kFloat});
  w.size = layout.size();
  return w;
}

// As many as the caller asks for, or as fill the GPU.
int32_t splits_for(const Row& row, const Request& request) {
  if (request.splits != 0) return request.splits;
  // In group mode few sequences may be long.
  const int64_t tiles_of_queries =
      std::min(request.batch * tiles(request.seqlen_q, row.tile_seqlen_q),
               request.batch + tiles(request.query_rows, row.tile_seqlen_q));
  constexpr int64_t kMany = 1 << 30;  // more than any GPU runs at a time
  const kernels::ArchFacts* const arch = kernels::find_arch(request.arch);
  return choose_splits(std::min(tiles_of_queries, kMany) * request.heads_q,
                       tiles(request.seqlen_k, row.tile_seqlen_k), arch ? arch->compute_units : 0);
}

class Kvcache final : public Pass {
 public:
  constexpr Kvcache()
      : Pass("forward over a cache", "no kernel: without queries or keys, outputs are filled\n",
             "attn_kvcache_fwd_workspace_size", true) {}

  Operands operands(const Problem& p) const override {
    const Extents key = cache_extents(p, p.head_size_qk), value = cache_extents(p, p.head_size_v);
    Operands all;
    all.add({"q", &Problem::q, query_extents(p, p.head_size_qk), false, Access::kRead});
    all.add({"k", &Problem::k, key, false, Access::kRead});
    all.add({"v", &Problem::v, value, true, Access::kRead});
    all.add({"o", &Problem::o, query_extents(p, p.head_size_v), true, Access::kWritten});
    return all;
  }

  bool has_work(const Problem& p) const override {
    // On a GPU only a kernel knows which sequences min_seqlen_q leaves out.
    return query_rows(p) != 0 && (has_keys(p) || p.min_seqlen_q > 0);
  }

  uint64_t workspace_size(const Problem& p) const override {
    return workspace_of(p, p.most_parts).size;
  }

  // Kernels step from part to part of a head's results by 32-bit offsets in bytes, of which some
  // are used up to the next multiple of 4 parts, and from sequence to sequence by 31-bit ones in
  // elements.
  void validate_workspace(const Problem& p) const override {
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

  void ask(const Problem& p, Request* request) const override {
    request->splits = p.splits;
    request->page_list = in_pages(p) && in_page_list(p);
  }

  // In pages a call that is not split has a kernel of its own, in one launch, where there is
  // one: it has no lse. It alone leaves sequences out.
  Plan plan(const LaunchTable& table, const Request& request) const override {
    if (request.page_list) return plan_kernels(table, kPageList, request);
    const Plan paged = plan_kernels(table, kPagedKeys, request);
    if (request.traits.skip_min_seqlen_q) return paged;
    Plan split = plan_kernels(table, kSplitKeys, request);
    if (const Row* const parts = split.main_row()) split.splits = splits_for(*parts, request);
    const bool is_split = split.is_complete() ? split.splits > 1 : request.splits > 1;
    return paged.is_complete() && !is_split ? paged : split;
  }

  int64_t parts(const Request&, const Plan& plan) const override { return plan.splits; }

  // The size may be asked for before lengths are passed.
  int64_t most_parts(const LaunchTable& table, const Problem& p) const override {
    if (p.device_type == ATTN_DEVICE_CPU || !has_work(p)) return 0;
    Request request = make_request(p, {});
    const int64_t most = attention::most_parts(table, request);
    if (request.lengths_on_device) return most;
    request.lengths_on_device = true;
    return std::max(most, attention::most_parts(table, request));
  }

  void launch(const Problem& p, const Plan& plan, Queue* queue) const override {
    kernels::LaunchArgs args = launch_args(p);
    // Kernels in group mode add the start of a sequence to k and v, which in pages they do not use.
    if (!p.cu_seqlens_k) args.problem.cu_seqlens_k = p.cu_seqlens_q;
    if (plan.splits != 0) {
      const Workspace workspace = workspace_of(p, plan.splits);
      args.features.splits = plan.splits;
      args.features.o_acc = workspace.o_acc.in<float>(p.workspace);
      args.features.lse_acc = workspace.lse_acc.in<float>(p.workspace);
    }
    queue->launch(plan, args);
  }

  void compute(const Problem& p) const override { reference_fwd(p); }
};

}  // namespace

const Pass& kvcache_pass() {
  static constexpr Kvcache pass;
  return pass;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
