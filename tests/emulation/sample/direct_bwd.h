// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Launches of the backward kinds, with all that CK's kernels can take.
#pragma once

#include "kernels/ck_fmha/launch_bwd.h"
#include "tests/emulation/sample/direct_args.h"

inline fmha_bwd_args direct_bwd_args(const DirectArgs& args, bool group_mode) {
  const Features& features = args.features;
  fmha_bwd_args ck = aiter_attn::ck_fmha::bwd_args(args.bwd, args.buffers, group_mode);
  ck.bias_ptr = features.bias;
  ck.stride_bias = features.bias_stride_seq;
  ck.nhead_stride_bias = features.bias_stride_head;
  ck.batch_stride_bias = features.bias_stride_batch;
  ck.dbias_ptr = features.dbias;
  ck.stride_dbias = features.bias_stride_seq;
  ck.nhead_stride_dbias = features.bias_stride_head;
  ck.batch_stride_dbias = features.bias_stride_batch;
  ck.split_stride_dq_acc = features.dq_acc_stride_split;
  ck.p_drop = features.p_drop;
  ck.p_undrop = 1.0f - features.p_drop;
  ck.drop_seed_offset = std::make_pair(features.drop_seed, features.drop_offset);
  return ck;
}

template <typename Kernel>
void make_bwd_dot_do_o(const DirectArgs& args, KernelLaunch* launch) {
  const auto made =
      fmha_bwd_dot_do_o_create_kargs_and_grids<Kernel>(direct_bwd_args(args, Kernel::kIsGroupMode));
  aiter_attn::ck_fmha::store_launch(made.at(ck_tile::number<0>{}), made.at(ck_tile::number<1>{}),
                                    launch);
}

template <typename Kernel>
void make_bwd_dq_dk_dv(const DirectArgs& args, KernelLaunch* launch) {
  const auto made =
      fmha_bwd_dq_dk_dv_create_kargs_and_grids<Kernel>(direct_bwd_args(args, Kernel::kIsGroupMode));
  aiter_attn::ck_fmha::store_launch(made.at(ck_tile::number<0>{}), made.at(ck_tile::number<1>{}),
                                    launch);
}

template <typename Kernel>
void make_bwd_convert_dq(const DirectArgs& args, KernelLaunch* launch) {
  const auto made = fmha_bwd_convert_dq_create_kargs_and_grids<Kernel>(
      direct_bwd_args(args, Kernel::kIsGroupMode));
  aiter_attn::ck_fmha::store_launch(made.at(ck_tile::number<0>{}), made.at(ck_tile::number<1>{}),
                                    launch);
}
