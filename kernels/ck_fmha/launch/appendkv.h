// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Kernel arguments and grid of an instance that appends keys and values to a cache.
#pragma once

#include "fmha_fwd.hpp"
#include "kernels/ck_fmha/launch/common.h"

namespace AITER_ATTN_NAMESPACE::kernels::ck_fmha {

template <typename Kernel>
void fwd_appendkv_launch(const LaunchArgs& args, Launch* launch) {
  const attn_problem& problem = args.problem;
  const Features& features = args.features;
  fmha_fwd_appendkv_args ck = {};
  ck.q_ptr = args.q.data;
  ck.k_ptr = args.k.data;
  ck.knew_ptr = features.k_new.data;
  ck.v_ptr = args.v.data;
  ck.vnew_ptr = features.v_new.data;
  ck.seqlen_k_ptr = features.seqlens_k;
  ck.seqlen_q = problem.seqlen_q;
  ck.seqlen_knew = features.seqlen_new;
  ck.batch = problem.batch;
  ck.hdim_q = problem.head_size_qk;
  ck.hdim_v = problem.head_size_v;
  ck.nhead_q = problem.heads_q;
  ck.nhead_k = problem.heads_k;
  ck.rotary_cos_ptr = features.rotary_cos;
  ck.rotary_sin_ptr = features.rotary_sin;
  ck.rotary_dim = features.rotary_size;
  ck.has_mask = problem.mask != ATTN_MASK_NONE;
  ck.block_table_ptr = const_cast<int32_t*>(features.block_table);
  ck.batch_stride_block_table = index(features.block_table_stride);
  ck.page_block_size = features.page_size;
  ck.cache_batch_idx = features.batch_index;
  ck.stride_q = index(args.q.stride_seq);
  ck.stride_k = index(args.k.stride_seq);
  ck.stride_knew = index(features.k_new.stride_seq);
  ck.stride_v = index(args.v.stride_seq);
  ck.stride_vnew = index(features.v_new.stride_seq);
  ck.nhead_stride_q = index(args.q.stride_head);
  ck.nhead_stride_k = index(args.k.stride_head);
  ck.nhead_stride_knew = index(features.k_new.stride_head);
  ck.nhead_stride_v = index(args.v.stride_head);
  ck.nhead_stride_vnew = index(features.v_new.stride_head);
  ck.batch_stride_q = index(args.q.stride_batch);
  // In pages, it is the stride between pages.
  ck.batch_stride_k = index(args.k.stride_batch);
  ck.batch_stride_knew = index(features.k_new.stride_batch);
  ck.batch_stride_v = index(args.v.stride_batch);
  ck.batch_stride_vnew = index(features.v_new.stride_batch);
  store_launch(fmha_fwd_appendkv_create_kargs_and_grids<Kernel>(ck), launch);
}

}  // namespace AITER_ATTN_NAMESPACE::kernels::ck_fmha
