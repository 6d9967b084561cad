// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "fmha_fwd.hpp"
#include "fwd_appendkv_dispatcher.inc"
#include "tests/dispatch/upstream_stub.h"

namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity {
namespace {

using Index = ck_tile::index_t;

// Both have the numbers 1 and 2 of these, in another order.
rope_enum rope_of(int32_t rotary) {
  if (rotary == ATTN_ROTARY_HALVES) return rope_enum::half_rotated;
  return rotary == ATTN_ROTARY_INTERLEAVED ? rope_enum::interleaved : rope_enum::none;
}

fmha_fwd_appendkv_traits traits_of(const Appended& call, const Told& told) {
  fmha_fwd_appendkv_traits traits = {};
  traits.hdim_q = told.bucket_qk;
  traits.hdim_v = told.bucket_v;
  traits.data_type = call.problem.dtype == ATTN_DTYPE_BF16 ? "bf16" : "fp16";
  traits.is_v_rowmajor = true;
  traits.rope_type = rope_of(call.args.rotary);
  return traits;
}

// As the program beside upstream's kernels fills them in (01_fmha/fmha_fwd.cpp).
fmha_fwd_appendkv_args args_of(const Appended& call) {
  const attn_problem& p = call.problem;
  const attn_kvcache& cache = call.cache;
  const attn_append_kv_args& args = call.args;
  const bool pages = cache.page_size > 0;
  const auto index = [](int64_t stride) { return static_cast<Index>(stride); };
  fmha_fwd_appendkv_args a = {};
  a.q_ptr = args.q.data;
  a.k_ptr = args.k.data;
  a.knew_ptr = args.k_new.data;
  a.v_ptr = args.v.data;
  a.vnew_ptr = args.v_new.data;
  a.seqlen_k_ptr = cache.seqlens_k;
  a.seqlen_q = p.seqlen_q;
  a.seqlen_knew = args.seqlen_new;
  a.batch = p.batch;
  a.hdim_q = p.head_size_qk;
  a.hdim_v = p.head_size_v;
  a.nhead_q = p.heads_q;
  a.nhead_k = p.heads_k;
  a.rotary_cos_ptr = args.rotary_size > 0 ? args.rotary_cos : nullptr;
  a.rotary_sin_ptr = args.rotary_size > 0 ? args.rotary_sin : nullptr;
  a.rotary_dim = args.rotary_size;
  a.has_mask = p.mask != ATTN_MASK_NONE;
  a.block_table_ptr = pages ? const_cast<int32_t*>(cache.block_table) : nullptr;
  a.batch_stride_block_table = index(cache.block_table_stride);
  a.page_block_size = cache.page_size;
  a.cache_batch_idx = cache.batch_index;
  a.stride_q = index(args.q.stride_seq);
  a.stride_k = index(args.k.stride_seq);
  a.stride_knew = index(args.k_new.stride_seq);
  a.stride_v = index(args.v.stride_seq);
  a.stride_vnew = index(args.v_new.stride_seq);
  a.nhead_stride_q = index(args.q.stride_head);
  a.nhead_stride_k = index(args.k.stride_head);
  a.nhead_stride_knew = index(args.k_new.stride_head);
  a.nhead_stride_v = index(args.v.stride_head);
  a.nhead_stride_vnew = index(args.v_new.stride_head);
  a.batch_stride_q = index(args.q.stride_batch);
  a.batch_stride_k = index(args.k.stride_batch);
  a.batch_stride_knew = index(args.k_new.stride_batch);
  a.batch_stride_v = index(args.v.stride_batch);
  a.batch_stride_vnew = index(args.v_new.stride_batch);
  return a;
}

}  // namespace

std::vector<Launch> upstream(const Appended& call, const Told& told) {
  const fmha_fwd_appendkv_args args = args_of(call);
  fmha_fwd_appendkv_args seen = args;
  seen.seqlen_q = told.seqlen_q;
  seen.hdim_q = told.head_size_qk;
  seen.hdim_v = told.head_size_v;
  fmha_fwd_appendkv(traits_of(call, told), seen, ck_tile::stream_config{});
  return launches_of(args);
}

}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity
