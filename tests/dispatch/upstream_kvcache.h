// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The common part of upstream's directions over a key-value cache.
#pragma once

#include "fmha_fwd.hpp"
#include "tests/dispatch/upstream_stub.h"

namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity {

std::vector<Launch> upstream_splitkv(const Cached& call, const Told& told);
std::vector<Launch> upstream_pagedkv(const Cached& call, const Told& told);
std::vector<Launch> upstream_batch_prefill(const Cached& call, const Told& told);

template <typename Traits>
Traits cached_traits_of(const Cached& call, const Told& told) {
  const attn_problem& p = call.problem;
  Traits traits = {};
  traits.hdim_q = told.bucket_qk;
  traits.hdim_v = told.bucket_v;
  traits.data_type = p.dtype == ATTN_DTYPE_BF16 ? "bf16" : "fp16";
  traits.is_group_mode = p.mode == ATTN_MODE_GROUP;
  traits.is_v_rowmajor = true;
  traits.has_logits_soft_cap = p.logits_soft_cap > 0;
  traits.mask_type = told.mask ? mask_enum::mask_bottom_right : mask_enum::no_mask;
  traits.bias_type = static_cast<bias_enum>(p.bias);
  traits.has_lse = call.args.lse != nullptr;
  return traits;
}

// As the program beside upstream's kernels fills them in (01_fmha/fmha_fwd.cpp).
template <typename Args>
Args cached_args_of(const Cached& call) {
  const attn_problem& p = call.problem;
  const attn_kvcache& cache = call.cache;
  const attn_kvcache_fwd_args& args = call.args;
  const bool group = p.mode == ATTN_MODE_GROUP;
  const bool pages = cache.page_size > 0;
  const ck_tile::index_t rows_q = group ? p.total_q : p.seqlen_q;
  const auto index = [](int64_t stride) { return static_cast<ck_tile::index_t>(stride); };
  Args a = {};
  a.q_ptr = args.q.data;
  a.k_ptr = args.k.data;
  a.v_ptr = args.v.data;
  a.bias_ptr = args.alibi_slopes;
  a.lse_ptr = args.lse;
  a.o_ptr = args.o.data;
  a.block_table_ptr = pages ? const_cast<int32_t*>(cache.block_table) : nullptr;
  a.batch_stride_block_table = index(cache.block_table_stride);
  a.page_block_size = cache.page_size;
  a.is_gappy = false;
  a.cache_batch_idx = cache.batch_index;
  a.seqstart_q_ptr = group ? p.cu_seqlens_q : nullptr;
  a.seqstart_k_ptr = group ? p.cu_seqlens_k : nullptr;
  a.seqlen_k_ptr = cache.seqlens_k;
  a.seqlen_q = rows_q;
  a.seqlen_k = group ? p.total_k : p.seqlen_k;
  a.batch = p.batch;
  a.max_seqlen_q = p.seqlen_q;
  a.hdim_q = p.head_size_qk;
  a.hdim_v = p.head_size_v;
  a.nhead_q = p.heads_q;
  a.nhead_k = p.heads_k;
  a.scale_s = p.softmax_scale;
  a.scale_p = 1;
  a.scale_o = 1;
  a.logits_soft_cap = p.logits_soft_cap;
  a.stride_q = index(args.q.stride_seq);
  a.stride_k = index(args.k.stride_seq);
  a.stride_v = index(args.v.stride_seq);
  a.stride_bias = index(args.alibi_stride_batch);
  a.stride_o = index(args.o.stride_seq);
  a.nhead_stride_q = index(args.q.stride_head);
  a.nhead_stride_k = index(args.k.stride_head);
  a.nhead_stride_v = index(args.v.stride_head);
  a.nhead_stride_lse = rows_q;
  a.nhead_stride_o = index(args.o.stride_head);
  a.batch_stride_q = index(args.q.stride_batch);
  a.batch_stride_k = index(args.k.stride_batch);
  a.batch_stride_v = index(args.v.stride_batch);
  a.batch_stride_lse = p.heads_q * rows_q;
  a.batch_stride_o = index(args.o.stride_batch);
  a.window_size_left = p.window_left;
  a.window_size_right = p.window_right;
  a.mask_type = p.mask;
  return a;
}

template <typename Args>
Args as_told(Args args, const Told& told) {
  args.seqlen_q = told.seqlen_q;
  args.seqlen_k = told.seqlen_k;
  args.hdim_q = told.head_size_qk;
  args.hdim_v = told.head_size_v;
  return args;
}

}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity
