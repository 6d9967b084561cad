// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "gtest/gtest.h"
#include "kernels/launch_table/launch_table.h"
#include "kernels/no_keys/no_keys.h"
#include "tests/support/attention/made_launch.h"

namespace AITER_ATTN_NAMESPACE::kernels {

void no_keys_launch(const LaunchArgs& args, Launch* launch);

namespace {

testing::MadeLaunch<no_keys::Args> make(const LaunchArgs& args) {
  const auto made = testing::make_launch<no_keys::Args>(no_keys_launch, args);
  EXPECT_EQ(made.args.workgroups, made.launch.grid[0]);
  EXPECT_EQ(made.launch.grid[1], 1u);
  return made;
}

TEST(NoKeysLaunch, Arguments) {
  const testing::Group group = {130, 300};
  float lse = 0;
  LaunchArgs args = testing::launch_args(8, 2, 70, 100);
  group.set(&args);
  args.problem.head_size_qk = 192;
  args.problem.head_size_v = 128;
  args.o = {&args, 0, 2048, 256};
  args.lse = &lse;
  const auto made = make(args);
  EXPECT_EQ(made.args.o, &args);
  EXPECT_EQ(made.args.lse, &lse);
  EXPECT_EQ(made.args.cu_seqlens_q, group.starts_q);
  EXPECT_EQ(made.args.cu_seqlens_k, group.starts_k);
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
