// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Kernel arguments and grid of a forward instance, made by CK's own host code.
#pragma once

#include "fmha_fwd.hpp"
#include "kernels/ck_fmha/launch_common.h"

namespace aiter_attn::ck_fmha {

inline fmha_fwd_args fwd_args(const attn_fwd_args& args, bool group_mode) {
  const attn_problem& problem = args.problem;
  const RowStrides lse = row_strides(problem, group_mode);
  fmha_fwd_args ck{};
  ck.q_ptr = args.q.data;
  ck.k_ptr = args.k.data;
  ck.v_ptr = args.v.data;
  ck.o_ptr = args.o.data;
  ck.lse_ptr = args.lse;
  ck.seqstart_q_ptr = problem.cu_seqlens_q;
  ck.seqstart_k_ptr = problem.cu_seqlens_k;
  ck.seqlen_q = group_mode ? problem.total_q : problem.seqlen_q;
  ck.seqlen_k = group_mode ? problem.total_k : problem.seqlen_k;
  ck.batch = problem.batch;
  ck.max_seqlen_q = problem.seqlen_q;
  ck.hdim_q = problem.head_size_qk;
  ck.hdim_v = problem.head_size_v;
  ck.nhead_q = problem.heads_q;
  ck.nhead_k = problem.heads_k;
  ck.scale_s = problem.softmax_scale;
  ck.scale_p = 1.0f;
  ck.scale_o = 1.0f;
  ck.stride_q = index(args.q.stride_seq);
  ck.stride_k = index(args.k.stride_seq);
  ck.stride_v = index(args.v.stride_seq);
  ck.stride_o = index(args.o.stride_seq);
  ck.nhead_stride_q = index(args.q.stride_head);
  ck.nhead_stride_k = index(args.k.stride_head);
  ck.nhead_stride_v = index(args.v.stride_head);
  ck.nhead_stride_o = index(args.o.stride_head);
  ck.nhead_stride_lse = lse.head;
  if (!group_mode) {
    ck.batch_stride_q = index(args.q.stride_batch);
    ck.batch_stride_k = index(args.k.stride_batch);
    ck.batch_stride_v = index(args.v.stride_batch);
    ck.batch_stride_o = index(args.o.stride_batch);
    ck.batch_stride_lse = lse.batch;
  }
  ck.window_size_left = problem.window_left;
  ck.window_size_right = problem.window_right;
  ck.mask_type = mask_type(problem);
  return ck;
}

template <typename Kernel>
void make_fwd_launch(const attn_fwd_args& args, KernelLaunch* launch) {
  const auto made = fmha_fwd_create_kargs_and_grids<Kernel>(fwd_args(args, Kernel::kIsGroupMode));
  store_launch(made.at(ck_tile::number<0>{}), made.at(ck_tile::number<1>{}), launch);
}

}  // namespace aiter_attn::ck_fmha
