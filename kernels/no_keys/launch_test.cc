// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "gtest/gtest.h"
#include "kernels/launch_table/launch_table.h"
#include "kernels/no_keys/no_keys.h"

namespace AITER_ATTN_NAMESPACE::kernels {

void no_keys_launch(const LaunchArgs& args, Launch* launch);

namespace {

struct Made {
  Launch launch = {};
  no_keys::Args args = {};
};

Made make(const LaunchArgs& args) {
  alignas(16) unsigned char kernarg[kMostKernargSize];
  Made made;
  made.launch.kernarg = kernarg;
  no_keys_launch(args, &made.launch);
  EXPECT_EQ(made.launch.kernarg_size, sizeof(made.args));
  std::memcpy(&made.args, kernarg, sizeof(made.args));
  EXPECT_EQ(made.args.workgroups, made.launch.grid[0]);
  EXPECT_EQ(made.launch.grid[1], 1u);
  return made;
}

TEST(NoKeysLaunch, Arguments) {
  const int32_t starts_q[4] = {}, starts_k[4] = {};
  float lse = 0;
  LaunchArgs args = {};
  args.problem.mode = ATTN_MODE_GROUP;
  args.problem.batch = 3;
  args.problem.heads_q = 8;
  args.problem.heads_k = 2;
  args.problem.head_size_qk = 192;
  args.problem.head_size_v = 128;
  args.problem.total_q = 130;
  args.problem.cu_seqlens_q = starts_q;
  args.problem.cu_seqlens_k = starts_k;
  args.o = {&args, 0, 2048, 256};
  args.lse = &lse;
  const Made made = make(args);
  EXPECT_EQ(made.args.o, &args);
  EXPECT_EQ(made.args.lse, &lse);
  EXPECT_EQ(made.args.cu_seqlens_q, starts_q);
  EXPECT_EQ(made.args.cu_seqlens_k, starts_k);
  EXPECT_EQ(made.args.stride_seq, 2048);
  EXPECT_EQ(made.args.stride_head, 256);
  EXPECT_EQ(made.args.total_q, 130);
  EXPECT_EQ(made.args.heads, 8u);
  EXPECT_EQ(made.args.head_size, 128u);
  EXPECT_EQ(made.launch.grid[0], 24u);
}

TEST(NoKeysLaunch, WorkgroupsAreBounded) {
  LaunchArgs args = {};
  args.problem.heads_q = 1 << 10;
  args.problem.batch = 1 << 20;
  EXPECT_EQ(make(args).launch.grid[0], 65536u);
  args.problem.batch = 0;
  EXPECT_EQ(make(args).launch.grid[0], 1u);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::kernels
