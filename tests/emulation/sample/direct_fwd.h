// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Launches of the forward kinds, with all that CK's kernels can take.
#pragma once

#include "kernels/ck_fmha/launch_fwd.h"
#include "tests/emulation/sample/direct_args.h"

inline fmha_fwd_args direct_fwd_args(const DirectArgs& args, bool group_mode) {
  const Features& features = args.features;
  fmha_fwd_args ck = aiter_attn::ck_fmha::fwd_args(args.fwd, group_mode);
  ck.bias_ptr = features.bias;
  ck.stride_bias = features.bias_stride_seq;
  ck.nhead_stride_bias = features.bias_stride_head;
  ck.batch_stride_bias = features.bias_stride_batch;
  ck.logits_soft_cap = features.logits_soft_cap;
  ck.min_seqlen_q = features.min_seqlen_q;
  ck.p_drop = features.p_drop;
  ck.drop_seed_offset = std::make_pair(features.drop_seed, features.drop_offset);
  return ck;
}

template <typename Kernel>
void make_fwd(const DirectArgs& args, KernelLaunch* launch) {
  const auto made =
      fmha_fwd_create_kargs_and_grids<Kernel>(direct_fwd_args(args, Kernel::kIsGroupMode));
  aiter_attn::ck_fmha::store_launch(made.at(ck_tile::number<0>{}), made.at(ck_tile::number<1>{}),
                                    launch);
}

// The fields that CK's structs for split and paged keys share with fmha_fwd_args.
template <typename CkArgs>
CkArgs common_args(const DirectArgs& args, bool group_mode) {
  const fmha_fwd_args from = direct_fwd_args(args, group_mode);
  CkArgs ck{};
  ck.q_ptr = from.q_ptr;
  ck.k_ptr = from.k_ptr;
  ck.v_ptr = from.v_ptr;
  ck.bias_ptr = from.bias_ptr;
  ck.lse_ptr = from.lse_ptr;
  ck.o_ptr = from.o_ptr;
  ck.seqstart_q_ptr = from.seqstart_q_ptr;
  ck.seqstart_k_ptr = from.seqstart_k_ptr;
  ck.seqlen_q = from.seqlen_q;
  ck.seqlen_k = from.seqlen_k;
  ck.batch = from.batch;
  ck.max_seqlen_q = from.max_seqlen_q;
  ck.hdim_q = from.hdim_q;
  ck.hdim_v = from.hdim_v;
  ck.nhead_q = from.nhead_q;
  ck.nhead_k = from.nhead_k;
  ck.scale_s = from.scale_s;
  ck.scale_p = from.scale_p;
  ck.scale_o = from.scale_o;
  ck.logits_soft_cap = from.logits_soft_cap;
  ck.stride_q = from.stride_q;
  ck.stride_k = from.stride_k;
  ck.stride_v = from.stride_v;
  ck.stride_bias = from.stride_bias;
  ck.stride_o = from.stride_o;
  ck.nhead_stride_q = from.nhead_stride_q;
  ck.nhead_stride_k = from.nhead_stride_k;
  ck.nhead_stride_v = from.nhead_stride_v;
  ck.nhead_stride_bias = from.nhead_stride_bias;
  ck.nhead_stride_lse = from.nhead_stride_lse;
  ck.nhead_stride_o = from.nhead_stride_o;
  ck.batch_stride_q = from.batch_stride_q;
  // Of keys and values in pages, it is the stride between pages, in group mode too.
  ck.batch_stride_k = args.fwd.k.stride_batch;
  ck.batch_stride_v = args.fwd.v.stride_batch;
  ck.batch_stride_bias = from.batch_stride_bias;
  ck.batch_stride_lse = from.batch_stride_lse;
  ck.batch_stride_o = from.batch_stride_o;
  ck.window_size_left = from.window_size_left;
  ck.window_size_right = from.window_size_right;
  ck.mask_type = from.mask_type;
  ck.block_table_ptr = const_cast<int32_t*>(args.features.block_table);
  ck.batch_stride_block_table = args.features.block_table_stride;
  ck.page_block_size = args.features.page_size;
  ck.seqlen_k_ptr = args.features.seqlens_k;
  return ck;
}

template <typename Kernel>
void make_fwd_pagedkv(const DirectArgs& args, KernelLaunch* launch) {
  auto ck = common_args<fmha_fwd_pagedkv_args>(args, Kernel::kIsGroupMode);
  ck.min_seqlen_q = args.features.min_seqlen_q;
  const auto made = fmha_fwd_pagedkv_create_kargs_and_grids<Kernel>(ck);
  aiter_attn::ck_fmha::store_launch(made.at(ck_tile::number<0>{}), made.at(ck_tile::number<1>{}),
                                    launch);
}

inline fmha_fwd_splitkv_args splitkv_args(const DirectArgs& args, bool group_mode) {
  auto ck = common_args<fmha_fwd_splitkv_args>(args, group_mode);
  const Features& features = args.features;
  const attn_problem& problem = args.fwd.problem;
  const int64_t rows = group_mode ? problem.total_q : problem.seqlen_q;
  const int64_t batch = group_mode ? 1 : problem.batch;
  ck.num_splits = features.splits;
  ck.o_acc_ptr = features.o_acc;
  ck.lse_acc_ptr = features.lse_acc;
  ck.stride_o_acc = problem.head_size_v;
  ck.nhead_stride_o_acc = rows * problem.head_size_v;
  ck.batch_stride_o_acc = group_mode ? 0 : problem.heads_q * ck.nhead_stride_o_acc;
  ck.split_stride_o_acc = batch * problem.heads_q * ck.nhead_stride_o_acc;
  ck.nhead_stride_lse_acc = rows;
  ck.batch_stride_lse_acc = group_mode ? 0 : problem.heads_q * rows;
  ck.split_stride_lse_acc = batch * problem.heads_q * rows;
  return ck;
}

template <typename Kernel>
void make_fwd_splitkv(const DirectArgs& args, KernelLaunch* launch) {
  const auto made =
      fmha_fwd_splitkv_create_kargs_and_grids<Kernel>(splitkv_args(args, Kernel::kIsGroupMode));
  aiter_attn::ck_fmha::store_launch(made.at(ck_tile::number<0>{}), made.at(ck_tile::number<1>{}),
                                    launch);
}

template <typename Kernel>
void make_fwd_splitkv_combine(const DirectArgs& args, KernelLaunch* launch) {
  const auto made = fmha_fwd_splitkv_combine_create_kargs_and_grids<Kernel>(
      splitkv_args(args, Kernel::kIsGroupMode));
  aiter_attn::ck_fmha::store_launch(made.at(ck_tile::number<0>{}), made.at(ck_tile::number<1>{}),
                                    launch);
}
