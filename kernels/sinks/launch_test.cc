// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "gtest/gtest.h"
#include "kernels/launch_table/launch_table.h"
#include "kernels/sinks/sinks.h"
#include "tests/support/attention/made_launch.h"

namespace AITER_ATTN_NAMESPACE::kernels {

void sink_launch(const LaunchArgs& args, Launch* launch);
void sink_grad_launch(const LaunchArgs& args, Launch* launch);

namespace {

using testing::make_launch;

testing::MadeLaunch<sinks::Args> make_sink(const LaunchArgs& args) {
  const auto made = make_launch<sinks::Args>(sink_launch, args);
  testing::expect_grid(made.launch, made.args.workgroups[0], made.args.workgroups[1], 1);
  return made;
}

LaunchArgs some_args() {
  static float lse, sink, dsink, delta;
  LaunchArgs args = testing::launch_args(8, 2, 70, 100);
  args.problem.head_size_qk = 128;
  args.problem.head_size_v = 72;
  args.o = {&lse, 70 * 576, 576, 72};
  args.lse = &lse;
  args.sink = &sink;
  args.dsink = &dsink;
  args.delta = &delta;
  args.features.min_seqlen_q = 4;
  return args;
}

TEST(SinksLaunch, BatchMode) {
  const LaunchArgs args = some_args();
  const auto made = make_sink(args);
  EXPECT_EQ(made.args.o, args.o.data);
  EXPECT_EQ(made.args.lse, args.lse);
  EXPECT_EQ(made.args.sink, args.sink);
  EXPECT_EQ(made.args.cu_seqlens_q, nullptr);
  EXPECT_EQ(made.args.stride_batch, 70 * 576);
  EXPECT_EQ(made.args.stride_seq, 576);
  EXPECT_EQ(made.args.stride_head, 72);
  EXPECT_EQ(made.args.rows, 70u);
  EXPECT_EQ(made.args.head_size, 72u);
  EXPECT_EQ(made.args.min_seqlen_q, 4);
  // 9 vectors in a row, to the next power of two: 16 rows to a workgroup, of 24 heads.
  EXPECT_EQ(made.args.row_items, 16u);
  EXPECT_EQ(made.launch.grid[0], 5u);
  EXPECT_EQ(made.launch.grid[1], 24u);
}

TEST(SinksLaunch, GroupModeHasStartsAndAllRows) {
  LaunchArgs args = some_args();
  const testing::Group group = {130, 300};
  group.set(&args);
  const auto made = make_sink(args);
  EXPECT_EQ(made.args.cu_seqlens_q, group.starts_q);
  EXPECT_EQ(made.args.rows, 130u);
  EXPECT_EQ(made.launch.grid[0], 5u) << "of the longest";
  const auto grad = make_launch<sinks::GradArgs>(sink_grad_launch, args);
  EXPECT_EQ(grad.args.runs, 1u);
  EXPECT_EQ(grad.args.rows, 130u);
}

TEST(SinksLaunch, PaddedSequencesAreToldByNumbersOrSums) {
  const int32_t used[4] = {};
  LaunchArgs args = some_args();
  args.problem.seqused_q = used;
  EXPECT_EQ(make_sink(args).args.seqused_q, used);
  EXPECT_EQ(make_launch<sinks::GradArgs>(sink_grad_launch, args).args.seqused_q, used);
  args.problem.seqused_q = nullptr;
  args.problem.cu_seqused_q = used;
  EXPECT_EQ(make_sink(args).args.cu_seqused_q, used);
  EXPECT_EQ(make_launch<sinks::GradArgs>(sink_grad_launch, args).args.cu_seqused_q, used);
}

TEST(SinksLaunch, RowsAreOfOneWave) {
  EXPECT_EQ(sinks::row_items_for(1), 1u);
  EXPECT_EQ(sinks::row_items_for(64), 8u);
  EXPECT_EQ(sinks::row_items_for(65), 16u);
  EXPECT_EQ(sinks::row_items_for(256), 32u);
  EXPECT_EQ(sinks::row_items_for(1000), 32u);
}

TEST(SinksLaunch, WorkgroupsAreBounded) {
  LaunchArgs args = some_args();
  args.problem.batch = args.problem.seqlen_q = 1 << 20;
  const auto made = make_sink(args);
  EXPECT_EQ(made.launch.grid[0], 16u);
  EXPECT_EQ(made.launch.grid[1], 4096u);
}

TEST(SinksLaunch, TheGradient) {
  LaunchArgs args = some_args();
  args.features.p_drop = 0.75f;
  const auto made = make_launch<sinks::GradArgs>(sink_grad_launch, args);
  EXPECT_EQ(made.args.dsink, args.dsink);
  EXPECT_EQ(made.args.sink, args.sink);
  EXPECT_EQ(made.args.lse, args.lse);
  EXPECT_EQ(made.args.delta, args.delta);
  EXPECT_EQ(made.args.scale, 4.0f);
  EXPECT_EQ(made.args.runs, 3u);
  EXPECT_EQ(made.args.rows, 70u);
  EXPECT_EQ(made.args.heads, 8u);
  EXPECT_EQ(made.launch.grid[0], 8u);
  EXPECT_EQ(made.launch.grid[1], 1u);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::kernels
