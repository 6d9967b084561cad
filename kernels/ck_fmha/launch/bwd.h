// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Kernel arguments and grids of the three backward instances, made by upstream's host code.
#pragma once

#include <utility>

#include "fmha_bwd.hpp"
#include "kernels/ck_fmha/launch/common.h"

namespace AITER_ATTN_NAMESPACE::kernels::ck_fmha {

inline fmha_bwd_args bwd_args(const LaunchArgs& args, bool group_mode) {
  const attn_problem& problem = args.problem;
  const Features& features = args.features;
  const RowStrides rows = row_strides(problem, group_mode);
  auto ck = problem_args<fmha_bwd_args>(args, group_mode);
  ck.seqstart_k_ptr = problem.cu_seqlens_k;
  ck.seqlen_q_ptr = problem.seqused_q;
  ck.seqlen_k_ptr = problem.seqused_k;
  ck.cu_seqlen_q_ptr = problem.cu_seqused_q;
  ck.cu_seqlen_k_ptr = problem.cu_seqused_k;
  ck.do_ptr = args.dout.data;
  ck.d_ptr = args.delta;
  ck.dq_ptr = args.dq.data;
  ck.dk_ptr = args.dk.data;
  ck.dv_ptr = args.dv.data;
  ck.dbias_ptr = features.dbias;
  ck.dq_acc_ptr = args.dq_acc;
  ck.max_seqlen_k = problem.seqlen_k;
  ck.scale = problem.softmax_scale;
  ck.stride_do = index(args.dout.stride_seq);
  ck.stride_dq = index(args.dq.stride_seq);
  ck.stride_dk = index(args.dk.stride_seq);
  ck.stride_dv = index(args.dv.stride_seq);
  ck.stride_dbias = index(features.dbias_stride_seq);
  ck.nhead_stride_do = index(args.dout.stride_head);
  ck.nhead_stride_lsed = rows.head;
  ck.nhead_stride_dq = index(args.dq.stride_head);
  ck.nhead_stride_dk = index(args.dk.stride_head);
  ck.nhead_stride_dv = index(args.dv.stride_head);
  ck.nhead_stride_dbias = index(features.dbias_stride_head);
  ck.batch_stride_dbias = index(features.dbias_stride_batch);
  const int64_t dq_acc_row = int64_t{problem.heads_q} * problem.head_size_qk;
  const int64_t size = problem.head_size_qk, queries = ck.seqlen_q;
  ck.stride_dq_acc = index(args.dq_acc_by_head ? size : dq_acc_row);
  ck.nhead_stride_dq_acc = index(args.dq_acc_by_head ? queries * size : size);
  ck.split_stride_dq_acc = index(features.dq_acc_stride_split);
  if (!group_mode) {
    ck.batch_stride_do = index(args.dout.stride_batch);
    ck.batch_stride_lsed = rows.batch;
    ck.batch_stride_dq_acc = index(queries * dq_acc_row);
    ck.batch_stride_dq = index(args.dq.stride_batch);
    ck.batch_stride_dk = index(args.dk.stride_batch);
    ck.batch_stride_dv = index(args.dv.stride_batch);
  }
  ck.p_drop = features.p_drop;
  ck.p_undrop = 1.0f - features.p_drop;
  ck.drop_seed_offset = seed_offset<decltype(ck.drop_seed_offset)>(args);
  return ck;
}

template <typename Kernel>
void bwd_dot_do_o_launch(const LaunchArgs& args, Launch* launch) {
  const auto ck = bwd_args(args, Kernel::kIsGroupMode);
  store_launch(fmha_bwd_dot_do_o_create_kargs_and_grids<Kernel>(ck), launch);
}

template <typename Kernel>
void bwd_dq_dk_dv_launch(const LaunchArgs& args, Launch* launch) {
  const auto ck = bwd_args(args, Kernel::kIsGroupMode);
  store_launch(fmha_bwd_dq_dk_dv_create_kargs_and_grids<Kernel>(ck), launch);
}

template <typename Kernel>
void bwd_convert_dq_launch(const LaunchArgs& args, Launch* launch) {
  const auto ck = bwd_args(args, Kernel::kIsGroupMode);
  store_launch(fmha_bwd_convert_dq_create_kargs_and_grids<Kernel>(ck), launch);
}

}  // namespace AITER_ATTN_NAMESPACE::kernels::ck_fmha
