// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The common part of all launch code of upstream's kernels: from this library's arguments to
// upstream's.
//
// Preconditions, checked by dispatch before any of this runs: the arguments are valid, every stride
// and every extent fits upstream's 32-bit index, and the instance serves the problem.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ck_tile/core.hpp"
#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::kernels::ck_fmha {

using Index = ck_tile::index_t;

constexpr Index index(int64_t value) { return static_cast<Index>(value); }

// Where a [heads, seqlen] statistic (log-sum-exp, delta) finds its rows.
struct RowStrides {
  Index batch;
  Index head;
};

// In group mode there is one row of total_q entries per head, and CK adds the sequence's start.
inline RowStrides row_strides(const attn_problem& problem, bool group_mode) {
  if (group_mode) return {0, problem.total_q};
  return {index(int64_t{problem.heads_q} * problem.seqlen_q), problem.seqlen_q};
}

// Upstream's variant of seed and offset: the numbers, or where they are.
template <typename SeedOffset>
SeedOffset seed_offset(const LaunchArgs& args) {
  const uint64_t* const state = args.problem.rng_state;
  if (state) return std::pair<const void*, const void*>(state, state + 1);
  return std::pair(args.features.drop_seed, args.features.drop_offset);
}

// The fields that upstream's argument structs of all directions share.
template <typename CkArgs>
CkArgs problem_args(const LaunchArgs& args, bool group_mode) {
  const attn_problem& problem = args.problem;
  const Features& features = args.features;
  CkArgs ck{};
  ck.q_ptr = args.q.data;
  ck.k_ptr = args.k.data;
  ck.v_ptr = args.v.data;
  ck.o_ptr = args.o.data;
  ck.lse_ptr = args.lse;
  ck.bias_ptr = features.bias;
  ck.seqstart_q_ptr = problem.cu_seqlens_q;
  ck.seqlen_q = group_mode ? problem.total_q : problem.seqlen_q;
  ck.seqlen_k = group_mode ? problem.total_k : problem.seqlen_k;
  ck.batch = problem.batch;
  ck.max_seqlen_q = problem.seqlen_q;
  ck.hdim_q = problem.head_size_qk;
  ck.hdim_v = problem.head_size_v;
  ck.nhead_q = problem.heads_q;
  ck.nhead_k = problem.heads_k;
  ck.stride_q = index(args.q.stride_seq);
  ck.stride_k = index(args.k.stride_seq);
  ck.stride_v = index(args.v.stride_seq);
  ck.stride_o = index(args.o.stride_seq);
  ck.stride_bias = index(features.bias_stride_seq);
  ck.nhead_stride_q = index(args.q.stride_head);
  ck.nhead_stride_k = index(args.k.stride_head);
  ck.nhead_stride_v = index(args.v.stride_head);
  ck.nhead_stride_o = index(args.o.stride_head);
  ck.nhead_stride_bias = index(features.bias_stride_head);
  ck.batch_stride_bias = index(features.bias_stride_batch);
  if (!group_mode) {
    ck.batch_stride_q = index(args.q.stride_batch);
    ck.batch_stride_k = index(args.k.stride_batch);
    ck.batch_stride_v = index(args.v.stride_batch);
    ck.batch_stride_o = index(args.o.stride_batch);
  }
  ck.window_size_left = problem.window_left;
  ck.window_size_right = problem.window_right;
  // Upstream's numbering of masks (mask_enum), on which its kernels branch at run time.
  static_assert(ATTN_MASK_NONE == 0 && ATTN_MASK_TOP_LEFT == 1 && ATTN_MASK_BOTTOM_RIGHT == 2);
  ck.mask_type = problem.mask;
  return ck;
}

// The same, and the fields that the forward directions share.
template <typename CkArgs>
CkArgs forward_args(const LaunchArgs& args, bool group_mode) {
  const RowStrides lse = row_strides(args.problem, group_mode);
  CkArgs ck = problem_args<CkArgs>(args, group_mode);
  ck.scale_s = args.problem.softmax_scale;
  ck.scale_p = 1.0f;
  ck.scale_o = 1.0f;
  ck.logits_soft_cap = args.features.logits_soft_cap;
  ck.nhead_stride_lse = lse.head;
  ck.batch_stride_lse = lse.batch;
  return ck;
}

// Of keys and values that may lie in pages.
template <typename CkArgs>
CkArgs cache_args(const LaunchArgs& args, bool group_mode) {
  const Features& features = args.features;
  CkArgs ck = forward_args<CkArgs>(args, group_mode);
  ck.seqstart_k_ptr = args.problem.cu_seqlens_k;
  // In pages, it is the stride between pages, in group mode too.
  ck.batch_stride_k = index(args.k.stride_batch);
  ck.batch_stride_v = index(args.v.stride_batch);
  ck.block_table_ptr = const_cast<int32_t*>(features.block_table);
  ck.batch_stride_block_table = index(features.block_table_stride);
  ck.page_block_size = features.page_size;
  ck.seqlen_k_ptr = features.seqlens_k;
  return ck;
}

// Copies kernel arguments and a grid as CK made them: a tuple of both.
template <typename Made>
void store_launch(const Made& made, Launch* launch) {
  const auto& kargs = made.at(ck_tile::number<0>{});
  const dim3& grid = made.at(ck_tile::number<1>{});
  using Kargs = std::remove_cv_t<std::remove_reference_t<decltype(kargs)>>;
  static_assert(std::is_trivially_copyable_v<Kargs>);
  static_assert(alignof(Kargs) <= 16);
  static_assert(sizeof(Kargs) <= kMostKernargSize);
  launch->grid[0] = grid.x;
  launch->grid[1] = grid.y;
  launch->grid[2] = grid.z;
  launch->dynamic_lds = 0;
  launch->kernarg_size = sizeof(Kargs);
  std::memcpy(launch->kernarg, &kargs, sizeof(Kargs));
}

}  // namespace AITER_ATTN_NAMESPACE::kernels::ck_fmha
