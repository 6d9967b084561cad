// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Kernel arguments and grids of the three backward instances, made by CK's own host code.
#pragma once

#include "fmha_bwd.hpp"
#include "kernels/ck_fmha/launch_common.h"

namespace aiter_attn::ck_fmha {

inline fmha_bwd_args bwd_args(const attn_bwd_args& args, const BwdBuffers& buffers,
                              bool group_mode) {
  const attn_problem& problem = args.problem;
  const RowStrides rows = row_strides(problem, group_mode);
  fmha_bwd_args ck{};
  ck.q_ptr = args.q.data;
  ck.k_ptr = args.k.data;
  ck.v_ptr = args.v.data;
  ck.o_ptr = args.o.data;
  ck.lse_ptr = args.lse;
  ck.do_ptr = args.dout.data;
  ck.d_ptr = buffers.delta;
  ck.dq_ptr = args.dq.data;
  ck.dk_ptr = buffers.dk.data;
  ck.dv_ptr = buffers.dv.data;
  ck.dq_acc_ptr = buffers.dq_acc;
  ck.seqstart_q_ptr = problem.cu_seqlens_q;
  ck.seqstart_k_ptr = problem.cu_seqlens_k;
  ck.seqlen_q = group_mode ? problem.total_q : problem.seqlen_q;
  ck.seqlen_k = group_mode ? problem.total_k : problem.seqlen_k;
  ck.batch = problem.batch;
  ck.max_seqlen_q = problem.seqlen_q;
  ck.max_seqlen_k = problem.seqlen_k;
  ck.hdim_q = problem.head_size_qk;
  ck.hdim_v = problem.head_size_v;
  ck.nhead_q = problem.heads_q;
  ck.nhead_k = problem.heads_k;
  ck.scale = problem.softmax_scale;
  ck.stride_q = index(args.q.stride_seq);
  ck.stride_k = index(args.k.stride_seq);
  ck.stride_v = index(args.v.stride_seq);
  ck.stride_o = index(args.o.stride_seq);
  ck.stride_do = index(args.dout.stride_seq);
  ck.stride_dq = index(args.dq.stride_seq);
  ck.stride_dk = index(buffers.dk.stride_seq);
  ck.stride_dv = index(buffers.dv.stride_seq);
  ck.nhead_stride_q = index(args.q.stride_head);
  ck.nhead_stride_k = index(args.k.stride_head);
  ck.nhead_stride_v = index(args.v.stride_head);
  ck.nhead_stride_o = index(args.o.stride_head);
  ck.nhead_stride_do = index(args.dout.stride_head);
  ck.nhead_stride_lsed = rows.head;
  ck.nhead_stride_dq = index(args.dq.stride_head);
  ck.nhead_stride_dk = index(buffers.dk.stride_head);
  ck.nhead_stride_dv = index(buffers.dv.stride_head);
  // dq_acc is contiguous [batch, seqlen_q, heads_q, head_size_qk], and there is one of it: CK's
  // split stride, between the partial sums of deterministic instances, stays 0.
  ck.stride_dq_acc = index(int64_t{problem.heads_q} * problem.head_size_qk);
  ck.nhead_stride_dq_acc = problem.head_size_qk;
  if (!group_mode) {
    ck.batch_stride_q = index(args.q.stride_batch);
    ck.batch_stride_k = index(args.k.stride_batch);
    ck.batch_stride_v = index(args.v.stride_batch);
    ck.batch_stride_o = index(args.o.stride_batch);
    ck.batch_stride_do = index(args.dout.stride_batch);
    ck.batch_stride_lsed = rows.batch;
    ck.batch_stride_dq_acc = index(int64_t{problem.seqlen_q} * ck.stride_dq_acc);
    ck.batch_stride_dq = index(args.dq.stride_batch);
    ck.batch_stride_dk = index(buffers.dk.stride_batch);
    ck.batch_stride_dv = index(buffers.dv.stride_batch);
  }
  ck.window_size_left = problem.window_left;
  ck.window_size_right = problem.window_right;
  ck.mask_type = mask_type(problem);
  ck.p_drop = 0.0f;
  ck.p_undrop = 1.0f;
  return ck;
}

template <typename Kernel>
void make_dot_do_o_launch(const attn_bwd_args& args, const BwdBuffers& buffers,
                          KernelLaunch* launch) {
  const auto made = fmha_bwd_dot_do_o_create_kargs_and_grids<Kernel>(
      bwd_args(args, buffers, Kernel::kIsGroupMode));
  store_launch(made.at(ck_tile::number<0>{}), made.at(ck_tile::number<1>{}), launch);
}

template <typename Kernel>
void make_dq_dk_dv_launch(const attn_bwd_args& args, const BwdBuffers& buffers,
                          KernelLaunch* launch) {
  const auto made = fmha_bwd_dq_dk_dv_create_kargs_and_grids<Kernel>(
      bwd_args(args, buffers, Kernel::kIsGroupMode));
  store_launch(made.at(ck_tile::number<0>{}), made.at(ck_tile::number<1>{}), launch);
}

template <typename Kernel>
void make_convert_dq_launch(const attn_bwd_args& args, const BwdBuffers& buffers,
                            KernelLaunch* launch) {
  const auto made = fmha_bwd_convert_dq_create_kargs_and_grids<Kernel>(
      bwd_args(args, buffers, Kernel::kIsGroupMode));
  store_launch(made.at(ck_tile::number<0>{}), made.at(ck_tile::number<1>{}), launch);
}

}  // namespace aiter_attn::ck_fmha
