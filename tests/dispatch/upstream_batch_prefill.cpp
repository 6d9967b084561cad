// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "ck_tile/ops/fmha/block/variants.hpp"
#include "fwd_batch_prefill_dispatcher.inc"
#include "tests/dispatch/upstream_kvcache.h"

namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity {
namespace {

using Index = ck_tile::index_t;

// The program beside upstream's kernels does not call these. AMD's aiter does, for which they were
// made, in group mode alone (mha_batch_prefill): k and v are packed rows, whose stride is the one
// between keys, and no tensor has a stride between batch entries.
fmha_batch_prefill_args args_of(const Cached& call) {
  const attn_problem& p = call.problem;
  const attn_kvcache& cache = call.cache;
  const attn_kvcache_fwd_args& args = call.args;
  const auto index = [](int64_t stride) { return static_cast<Index>(stride); };
  fmha_batch_prefill_args a = {};
  a.q_ptr = args.q.data;
  a.k_ptr = args.k.data;
  a.v_ptr = args.v.data;
  a.bias_ptr = args.alibi_slopes;
  a.lse_ptr = args.lse;
  a.o_ptr = args.o.data;
  a.seqstart_q_ptr = p.cu_seqlens_q;
  a.seqlen_q = p.total_q;
  a.seqlen_k = cache.entries;
  a.batch = p.batch;
  a.max_seqlen_q = p.seqlen_q;
  a.hdim_q = p.head_size_qk;
  a.hdim_v = p.head_size_v;
  a.nhead_q = p.heads_q;
  a.nhead_k = p.heads_k;
  a.num_total_pages = cache.entries;
  a.kv_indptr = const_cast<int32_t*>(cache.page_indptr);
  a.kv_page_indices = const_cast<int32_t*>(cache.page_indices);
  a.scale_s = p.softmax_scale;
  a.scale_p = 1;
  a.scale_o = 1;
  a.logits_soft_cap = p.logits_soft_cap;
  a.stride_q = index(args.q.stride_seq);
  a.stride_k = index(args.k.stride_batch);
  a.stride_v = index(args.v.stride_batch);
  a.stride_bias = index(args.alibi_stride_batch);
  a.stride_o = index(args.o.stride_seq);
  a.nhead_stride_q = index(args.q.stride_head);
  a.nhead_stride_k = index(args.k.stride_head);
  a.nhead_stride_v = index(args.v.stride_head);
  a.nhead_stride_lse = p.total_q;
  a.nhead_stride_o = index(args.o.stride_head);
  a.window_size_left = p.window_left;
  a.window_size_right = p.window_right;
  a.mask_type = p.mask;
  a.drop_seed_offset = std::pair<uint64_t, uint64_t>(0, 0);
  return a;
}

}  // namespace

std::vector<Launch> upstream_batch_prefill(const Cached& call, const Told& told) {
  // Its arguments have no place for these.
  const attn_kvcache_fwd_args& asked = call.args;
  if (call.cache.seqlens_k || asked.splits > 1 || asked.min_seqlen_q > 0) return {};
  const fmha_batch_prefill_args args = args_of(call);
  compute_units = call.busy ? 0 : kComputeUnits;
  fmha_batch_prefill(cached_traits_of<fmha_batch_prefill_traits>(call, told), as_told(args, told),
                     ck_tile::stream_config{});
  return launches_of(args);
}

}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity
