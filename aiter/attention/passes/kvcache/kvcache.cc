// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/passes/kvcache/kvcache.h"

#include <algorithm>
#include <cstdint>

#include "aiter/attention/dispatch.h"
#include "aiter/attention/launch.h"
#include "aiter/attention/passes/kvcache/splits.h"
#include "aiter/attention/problem/checks.h"
#include "aiter/attention/problem/validate.h"
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

bool has_keys(const Problem& p) {
  const Extents e = cache_extents(p, p.head_size_qk);
  return p.seqlen_k != 0 && e.batch != 0 && e.seq != 0;
}

// Upstream's kernels over single keys go by page_indptr alone, and address all of the cache at
// once.
void validate_page_list_on_gpu(const Problem& p) {
  const auto has_none = [](const char* field, int64_t value, const char* what) {
    fail(Status::kUnsupported, Field(field), " is ", value, ", but kernels over page_indptr ",
         what);
  };
  if (p.splits > 1) has_none("splits", p.splits, "do not split keys: pass 0 or 1");
  if (p.min_seqlen_q > 0) has_none("min_seqlen_q", p.min_seqlen_q, "leave no sequence out: pass 0");
  if (p.cache.seqlens_k) {
    fail(Status::kUnsupported, Field("seqlens_k"),
         " is set, but kernels over page_indptr take its differences ",
         "as lengths: pass NULL, and a page_indptr that says them");
  }
  const auto validate_reach = [&p](const char* field, int64_t stride, int32_t head_size) {
    if (p.cache.entries < 2 || stride < 0) return;
    const int64_t most = (kMaxInt32 - head_size) / (p.cache.entries - 1);
    if (stride <= most) return;
    refuse(field, stride, "over ", p.cache.entries, " entries it exceeds the ", kMaxInt32,
           " elements that a GPU kernel over page_indptr can address: pass part of the cache");
  };
  validate_reach("k.stride_batch", p.k.stride_batch, p.head_size_qk);
  validate_reach("v.stride_batch", p.v.stride_batch, p.head_size_v);
}

// Refuses calls that Composable Kernel has no kernel for, or computes in 32 bits.
void validate_on_gpu(const Problem& p) {
  if (p.splits > kernels::kMostSplits) {
    fail(Status::kUnsupported, Field("splits"), " is ", p.splits, ", but kernels combine up to ",
         kernels::kMostSplits, ": pass that, or 0 for as many as fill the GPU");
  }
  if (p.splits > 1 && p.min_seqlen_q > 0) {
    fail(Status::kUnsupported, Field("splits"), " is ", p.splits,
         ", but kernels that leave sequences out, as ",
         "min_seqlen_q asks, do not split keys: pass 1");
  }
  if (p.min_seqlen_q > 0 && query_rows(p) != 0 && !has_keys(p)) {
    fail(Status::kUnsupported, Field("min_seqlen_q"), " is ", p.min_seqlen_q,
         ", but without any key no kernel runs that could tell which sequences it leaves out: ",
         "leave the call out, or pass 0");
  }
  if (p.sink && p.lse && query_rows(p) != 0 && !has_keys(p)) {
    fail(Status::kUnsupported, Field("sink"),
         " is set, but without any key no kernel runs that could write it to lse: leave lse NULL, ",
         "or leave the call out");
  }
  if (p.sink && p.min_seqlen_q > 0 && query_rows(p) != 0) {
    fail(Status::kUnsupported, Field("sink"), " is set, but kernels that leave sequences out, as ",
         "min_seqlen_q asks, write no lse, which a sink needs: pass min_seqlen_q 0, or leave sink ",
         "NULL");
  }
  if (in_pages(p) && in_page_list(p)) validate_page_list_on_gpu(p);
}

void validate_attention(const Problem& p) {
  constexpr int32_t kMostSplits = 128;
  if (p.splits < 0 || p.splits > kMostSplits) {
    refuse("splits", p.splits, "must be from 1 to ", kMostSplits,
           ", or 0: as many as fill the GPU");
  }
  if (p.device_type != ATTN_DEVICE_CPU) validate_on_gpu(p);
  const auto has_none = [](const char* field, bool set, const char* what) {
    require_unset(field, set, "attention over a cache has no ", what,
                  ": leave it 0, or gather the keys and call attn_fwd");
  };
  has_none("dropout_p", p.dropout_p > 0, "dropout");
  has_none("bias", p.bias == ATTN_BIAS_ELEMENTWISE, "elementwise bias");
}

// Of keys in parts: fp32 [batch, heads_q, splits, seqlen_q] or [heads_q, splits, total_q], and
// o_acc with head_size_v. Empty where there are 0.
struct Workspace {
  WorkspacePiece lse_acc;
  WorkspacePiece o_acc;
  WorkspacePiece lse;  // as the caller's, where the sink alone needs one
  uint64_t size;
};

Workspace workspace_of(const Problem& p, int64_t splits) {
  constexpr int64_t kFloat = sizeof(float);
  const int64_t queries = query_rows(p);
  WorkspaceLayout layout;
  Workspace w = {};
  w.lse_acc = layout.add({splits, queries, p.heads_q, kFloat});
  w.o_acc = layout.add({splits, queries, p.heads_q, p.head_size_v, kFloat});
  w.lse = layout.add({keeps_lse(p) ? queries : 0, p.heads_q, kFloat});
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
  constexpr Kvcache() : Pass("forward over a cache", "attn_kvcache_fwd_workspace_size", true) {}

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
    if (p.most_parts == 0) return;
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
    request->sink = p.sink != nullptr;
    request->traits.lse |= request->sink;
  }

  Plan plan(const LaunchTable& table, const Request& request) const override {
    Plan plan = plan_attention(table, request);
    if (request.sink) plan.add(Kind::kSink, pick_kernel(table, Kind::kSink, request));
    return plan;
  }

  // In pages a call that is not split has a kernel of its own, in one launch, where there is
  // one: it has no lse. It alone leaves sequences out.
  Plan plan_attention(const LaunchTable& table, const Request& request) const {
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
    const Workspace workspace = workspace_of(p, plan.splits);
    if (keeps_lse(p)) args.lse = workspace.lse.in<float>(p.workspace);
    if (plan.splits != 0) {
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

Problem read(const attn_kvcache_fwd_args* given, Pointers pointers) {
  Problem p = read_problem(given, kvcache_pass());
  validate_problem(&p, pointers);
  validate_bias(p);
  refuse_fp8(p);
  validate_min_seqlen_q(p);
  validate_places(p);
  validate_attention(p);
  validate_arrays(&p, pointers);
  make_canonical(&p);
  return p;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
