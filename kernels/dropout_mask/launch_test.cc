// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "gtest/gtest.h"
#include "kernels/dropout_mask/dropout_mask.h"
#include "kernels/launch_table/launch_table.h"
#include "tests/support/attention/made_launch.h"

namespace AITER_ATTN_NAMESPACE::kernels {

void dropout_mask_launch(const LaunchArgs& args, Launch* launch);

namespace {

testing::MadeLaunch<dropout_mask::Args> make(const LaunchArgs& args) {
  const auto made = testing::make_launch<dropout_mask::Args>(dropout_mask_launch, args);
  testing::expect_grid(made.launch, made.args.workgroups[0], made.args.workgroups[1], 1);
  return made;
}

LaunchArgs some_args() {
  static uint8_t kept;
  LaunchArgs args = testing::launch_args(8, 2, 70, 100);
  args.problem.dropout_p = 0.25f;
  args.problem.dropout_seed = 5;
  args.problem.dropout_offset = 6;
  args.kept = &kept;
  return args;
}

TEST(DropoutMaskLaunch, BatchMode) {
  const LaunchArgs args = some_args();
  const auto made = make(args);
  EXPECT_EQ(made.args.kept, args.kept);
  EXPECT_EQ(made.args.cu_seqlens_q, nullptr);
  EXPECT_EQ(made.args.rng_state, nullptr);
  EXPECT_EQ(made.args.seed, 5u);
  EXPECT_EQ(made.args.offset, 6u);
  EXPECT_EQ(made.args.rows, 70u);
  EXPECT_EQ(made.args.threshold, 191u);  // floor(0.75 * 255)
  // 3 x 4 tiles, four to a workgroup, of 24 heads.
  EXPECT_EQ(made.launch.grid[0], 3u);
  EXPECT_EQ(made.launch.grid[1], 24u);
}

TEST(DropoutMaskLaunch, GroupModeHasStartsAndAllRows) {
  LaunchArgs args = some_args();
  const testing::Group group = {130, 300};
  const uint64_t rng_state[2] = {};
  group.set(&args);
  args.problem.rng_state = rng_state;
  const int32_t sums[2][4] = {};
  args.problem.cu_seqused_q = sums[0];
  args.problem.cu_seqused_k = sums[1];
  const auto made = make(args);
  EXPECT_EQ(made.args.cu_seqused_q, sums[0]);
  EXPECT_EQ(made.args.cu_seqused_k, sums[1]);
  EXPECT_EQ(made.args.cu_seqlens_q, group.starts_q);
  EXPECT_EQ(made.args.cu_seqlens_k, group.starts_k);
  EXPECT_EQ(made.args.rng_state, rng_state);
  EXPECT_EQ(made.args.rows, 130u);
}

TEST(DropoutMaskLaunch, WithoutDropoutEveryByteStays) {
  LaunchArgs args = some_args();
  const uint64_t rng_state[2] = {};
  args.problem.dropout_p = 0;
  args.problem.rng_state = rng_state;
  const auto made = make(args);
  EXPECT_EQ(made.args.threshold, 255u);
  EXPECT_EQ(made.args.rng_state, nullptr);
}

TEST(DropoutMaskLaunch, WorkgroupsAreBounded) {
  LaunchArgs args = some_args();
  args.problem.batch = 1 << 20;
  args.problem.seqlen_q = args.problem.seqlen_k = 1 << 20;
  const auto made = make(args);
  EXPECT_EQ(made.launch.grid[0], 16u);
  EXPECT_EQ(made.launch.grid[1], 4096u);
  args.problem.batch = args.problem.heads_q = 1;
  EXPECT_EQ(make(args).launch.grid[0], 65536u);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::kernels
