// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// What the forward and the backward launch code share: from this library's arguments to CK's.
//
// Preconditions, checked by dispatch before any of this runs: the arguments are valid, every stride
// and every extent fits CK's 32-bit index, and the instance serves the problem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "aiter/launch_table.h"
#include "ck_tile/core.hpp"

namespace aiter_attn::ck_fmha {

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

// CK's numbering of masks (mask_enum), on which its kernels branch at run time.
inline Index mask_type(const attn_problem& problem) {
  static_assert(ATTN_MASK_NONE == 0 && ATTN_MASK_TOP_LEFT == 1 && ATTN_MASK_BOTTOM_RIGHT == 2);
  return problem.mask;
}

// Copies kernel arguments and a grid as CK made them.
template <typename Kargs>
void store_launch(const Kargs& kargs, const dim3& grid, KernelLaunch* launch) {
  static_assert(std::is_trivially_copyable_v<Kargs>);
  static_assert(sizeof(Kargs) <= sizeof(launch->kernarg));
  static_assert(alignof(Kargs) <= 16);
  launch->grid[0] = grid.x;
  launch->grid[1] = grid.y;
  launch->grid[2] = grid.z;
  launch->kernarg_size = sizeof(Kargs);
  std::memcpy(launch->kernarg, &kargs, sizeof(Kargs));
}

}  // namespace aiter_attn::ck_fmha
