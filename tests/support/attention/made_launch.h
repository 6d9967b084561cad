// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Launch code, called by hand: the grid and the kernel arguments that it makes.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::testing {

// args: the struct of the kernel's arguments.
template <typename Args>
struct MadeLaunch {
  kernels::Launch launch = {};
  Args args = {};
};

template <typename Args>
MadeLaunch<Args> make_launch(kernels::MakeLaunch function, const kernels::LaunchArgs& args) {
  alignas(16) unsigned char kernarg[kernels::kMostKernargSize];
  MadeLaunch<Args> made;
  made.launch.kernarg = kernarg;
  function(args, &made.launch);
  EXPECT_EQ(made.launch.kernarg_size, sizeof(made.args));
  EXPECT_EQ(made.launch.dynamic_lds, 0u);
  std::memcpy(&made.args, kernarg, sizeof(made.args));
  return made;
}

inline void expect_grid(const kernels::Launch& launch, uint32_t x, uint32_t y, uint32_t z) {
  EXPECT_EQ(launch.grid[0], x);
  EXPECT_EQ(launch.grid[1], y);
  EXPECT_EQ(launch.grid[2], z);
}

// Batch mode: 3 entries, heads of q and of k.
inline kernels::LaunchArgs launch_args(int32_t heads_q, int32_t heads_k, int32_t seqlen_q,
                                       int32_t seqlen_k) {
  kernels::LaunchArgs args = {};
  args.problem.mode = ATTN_MODE_BATCH;
  args.problem.batch = 3;
  args.problem.heads_q = heads_q;
  args.problem.heads_k = heads_k;
  args.problem.seqlen_q = seqlen_q;
  args.problem.seqlen_k = seqlen_k;
  return args;
}

// The sequences that make a call of batch mode one of group mode: all tokens, and their starts.
struct Group {
  int32_t total_q, total_k;
  int32_t starts_q[4] = {};
  int32_t starts_k[4] = {};

  void set(kernels::LaunchArgs* args) const {
    args->problem.mode = ATTN_MODE_GROUP;
    args->problem.total_q = total_q;
    args->problem.total_k = total_k;
    args->problem.cu_seqlens_q = starts_q;
    args->problem.cu_seqlens_k = starts_k;
  }
};

}  // namespace AITER_ATTN_NAMESPACE::testing
