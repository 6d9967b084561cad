// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Kernel arguments and grids of a forward pass with split keys: its parts, and their combination.
#pragma once

#include "fmha_fwd.hpp"
#include "kernels/ck_fmha/launch/common.h"

namespace AITER_ATTN_NAMESPACE::kernels::ck_fmha {

inline fmha_fwd_splitkv_args splitkv_args(const LaunchArgs& args, bool group_mode) {
  const Features& features = args.features;
  const attn_problem& problem = args.problem;
  const int64_t rows = group_mode ? problem.total_q : problem.seqlen_q;
  const int64_t splits = features.splits;
  // Parts of a head lie together: upstream steps from one to the next in 32 bits.
  const int64_t head = splits * rows;
  auto ck = cache_args<fmha_fwd_splitkv_args>(args, group_mode);
  ck.cache_batch_idx = features.batch_index;
  ck.num_splits = features.splits;
  ck.o_acc_ptr = features.o_acc;
  ck.lse_acc_ptr = features.lse_acc;
  ck.stride_o_acc = problem.head_size_v;
  ck.split_stride_o_acc = index(rows * problem.head_size_v);
  ck.nhead_stride_o_acc = index(head * problem.head_size_v);
  ck.batch_stride_o_acc = group_mode ? 0 : index(problem.heads_q * head * problem.head_size_v);
  ck.split_stride_lse_acc = index(rows);
  ck.nhead_stride_lse_acc = index(head);
  ck.batch_stride_lse_acc = group_mode ? 0 : index(problem.heads_q * head);
  return ck;
}

inline uint32_t blocks_of(uint32_t size, uint32_t block) { return (size + block - 1) / block; }

template <typename Kernel>
void fwd_splitkv_launch(const LaunchArgs& args, Launch* launch) {
  const auto ck = splitkv_args(args, Kernel::kIsGroupMode);
  store_launch(fmha_fwd_splitkv_create_kargs_and_grids<Kernel>(ck), launch);
}

template <typename Kernel>
void fwd_splitkv_combine_launch(const LaunchArgs& args, Launch* launch) {
  static_assert(Kernel::FmhaPipeline::kMaxSplits == kMostSplits);
  const auto ck = splitkv_args(args, Kernel::kIsGroupMode);
  store_launch(fmha_fwd_splitkv_combine_create_kargs_and_grids<Kernel>(ck), launch);
  // Upstream's host code would ask the device for the size of its waves: half as many work-items
  // combine half as many rows.
  const uint32_t work_items = launch->work_items;
  if (work_items != 0 && work_items < Kernel::kBlockSize) {
    using Problem = typename Kernel::FmhaPipeline::Problem;
    const uint32_t rows = Problem::kM0 * work_items / Kernel::kBlockSize;
    launch->grid[0] = blocks_of(ck.max_seqlen_q, rows) * blocks_of(ck.hdim_v, Problem::kN1);
  }
}

}  // namespace AITER_ATTN_NAMESPACE::kernels::ck_fmha
