// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "gtest/gtest.h"
#include "kernels/launch_table/launch_table.h"
#include "kernels/sum_heads/sum_heads.h"
#include "tests/support/attention/made_launch.h"

namespace AITER_ATTN_NAMESPACE::kernels {

void sum_heads_launch(const LaunchArgs& args, Launch* launch);

namespace {

testing::MadeLaunch<sum_heads::Args> make(const LaunchArgs& args) {
  return testing::make_launch<sum_heads::Args>(sum_heads_launch, args);
}

LaunchArgs some_args() {
  LaunchArgs args = testing::launch_args(8, 2, 7, 100);
  args.sum_from = {&args, 1, 2, 3};
  args.sum_to = {&args.problem, 40000, 400, 200};
  args.sum_head_size = 100;
  return args;
}

TEST(SumHeadsLaunch, BatchMode) {
  const auto made = make(some_args());
  EXPECT_EQ(made.args.seqlen, 100);
  EXPECT_EQ(made.args.tokens, 300);
  EXPECT_EQ(made.args.group, 4);
  EXPECT_EQ(made.args.head_size, 100);
  EXPECT_EQ(made.args.dst_stride_batch, 40000);
  EXPECT_EQ(made.args.dst_stride_seq, 400);
  EXPECT_EQ(made.args.dst_stride_head, 200);
  // 300 tokens x 2 heads x 13 vectors of 8, 256 to a workgroup.
  EXPECT_EQ(made.launch.grid[0], 31u);
  EXPECT_EQ(made.launch.grid[1], 1u);
  EXPECT_EQ(made.args.workgroups, made.launch.grid[0]);
}

TEST(SumHeadsLaunch, GroupModeIsOneSequence) {
  LaunchArgs args = some_args();
  const testing::Group group = {21, 130};
  group.set(&args);
  const auto made = make(args);
  EXPECT_EQ(made.args.seqlen, 130);
  EXPECT_EQ(made.args.tokens, 130);
}

TEST(SumHeadsLaunch, PaddedSequencesAreToldByNumbersOrSums) {
  const int32_t used[4] = {};
  LaunchArgs args = some_args();
  const testing::Group group = {21, 130};
  group.set(&args);
  EXPECT_EQ(make(args).args.batch, 0);
  args.problem.seqused_k = used;
  EXPECT_EQ(make(args).args.seqused, used);
  EXPECT_EQ(make(args).args.cu_seqlens, group.starts_k);
  EXPECT_EQ(make(args).args.batch, 3);
  args.problem.seqused_k = nullptr;
  args.problem.cu_seqused_k = used;
  EXPECT_EQ(make(args).args.cu_seqused, used);
  EXPECT_EQ(make(args).args.batch, 3);
}

TEST(SumHeadsLaunch, WorkgroupsAreBounded) {
  LaunchArgs args = some_args();
  args.problem.batch = 1 << 20;
  EXPECT_EQ(make(args).launch.grid[0], 65536u);
  args.problem.batch = 0;
  EXPECT_EQ(make(args).launch.grid[0], 1u);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::kernels
