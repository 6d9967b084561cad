// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "gtest/gtest.h"
#include "kernels/aiter_asm/forward_arguments.h"
#include "kernels/launch_table/launch_table.h"
#include "tests/support/attention/made_launch.h"

namespace AITER_ATTN_NAMESPACE::kernels::aiter_asm {

#define AITER_ASM_DECLARE(name, ...) void name(const LaunchArgs& args, Launch* launch);
AITER_ASM_FORWARD_LAUNCHES(AITER_ASM_DECLARE)
#undef AITER_ASM_DECLARE

namespace {

using testing::expect_grid;

testing::MadeLaunch<ForwardArguments> make(MakeLaunch function, const LaunchArgs& args) {
  return testing::make_launch<ForwardArguments>(function, args);
}

float lse;

// 3 batch entries of 600 queries and 700 keys; strides of q are unlike those of a contiguous
// tensor.
LaunchArgs some_args() {
  LaunchArgs args = testing::launch_args(6, 2, 600, 700);
  args.problem.head_size_qk = args.problem.head_size_v = 128;
  args.problem.softmax_scale = 0.25f;
  args.q = {&args, 1000000, 1024, 136};
  args.k = {&lse, 200000, 256, 128};
  args.v = {&lse + 1, 300000, 264, 128};
  args.o = {&lse + 2, 500000, 768, 128};
  args.lse = &lse;
  return args;
}

TEST(AsmLaunch, BatchMode) {
  const LaunchArgs args = some_args();
  const auto made = make(forward_256_none_batch, args);
  expect_grid(made.launch, 3, 6, 3);
  EXPECT_EQ(made.args.q, args.q.data);
  EXPECT_EQ(made.args.o, args.o.data);
  EXPECT_EQ(made.args.lse, &lse);
  EXPECT_EQ(made.args.store_lse, 1u);
  EXPECT_EQ(made.args.scale, 0.25f);
  EXPECT_EQ(made.args.seqlen_q, 600u);
  EXPECT_EQ(made.args.seqlen_k, 700u);
  // In bytes.
  EXPECT_EQ(made.args.stride_q, 2048u);
  EXPECT_EQ(made.args.tile_stride_q, 256 * 2048u);
  EXPECT_EQ(made.args.head_stride_q, 272u);
  EXPECT_EQ(made.args.batch_stride_q, 2000000u);
  EXPECT_EQ(made.args.stride_v, 528u);
  EXPECT_EQ(made.args.batch_stride_o, 1000000u);
  EXPECT_EQ(made.args.head_stride_lse, 2400u);
  EXPECT_EQ(made.args.heads_q_per_head_k, 3u);
  EXPECT_EQ(made.args.option, 5u);
  EXPECT_EQ(made.args.seqstart_q, nullptr);
}

TEST(AsmLaunch, GroupModeHasTotalsAndNoBatchStrides) {
  LaunchArgs args = some_args();
  const testing::Group sequences = {1000, 1100};
  sequences.set(&args);
  const auto made = make(forward_256_none_group, args);
  expect_grid(made.launch, 6, 3, 3);
  EXPECT_EQ(made.args.seqlen_q, 1000u);
  EXPECT_EQ(made.args.seqlen_k, 1100u);
  EXPECT_EQ(made.args.batch_stride_q, 0u);
  EXPECT_EQ(made.args.head_stride_lse, 4000u);
  EXPECT_EQ(made.args.seqstart_q, sequences.starts_q);
  EXPECT_EQ(made.args.padded_seqstart_q, sequences.starts_q);
  EXPECT_EQ(made.args.seqstart_k, sequences.starts_k);
  EXPECT_EQ(made.args.padded_seqstart_k, sequences.starts_k);
  expect_grid(make(forward_256_causal_group, args).launch, 6, 3, 2);
}

TEST(AsmLaunch, PaddedSequencesHaveStartsApartFromSumsOfUsedRows) {
  LaunchArgs args = some_args();
  const testing::Group sequences = {1000, 1100};
  sequences.set(&args);
  const int32_t used[] = {0, 1, 2, 3};
  args.problem.cu_seqused_k = used;
  const auto made = make(forward_256_causal_group, args);
  EXPECT_EQ(made.args.seqlen_k, 1100u);
  EXPECT_EQ(made.args.seqstart_q, sequences.starts_q);
  EXPECT_EQ(made.args.seqstart_k, used);
  EXPECT_EQ(made.args.padded_seqstart_k, sequences.starts_k);
}

TEST(AsmLaunch, WithAMaskAWorkgroupHasTwoTiles) {
  LaunchArgs args = some_args();
  expect_grid(make(forward_256_causal_batch, args).launch, 2, 6, 3);
  args.problem.seqlen_q = 513;
  expect_grid(make(forward_256_causal_batch, args).launch, 2, 6, 3);
  args.problem.seqlen_q = 512;
  expect_grid(make(forward_256_causal_batch, args).launch, 1, 6, 3);
}

TEST(AsmLaunch, HeadsOfTwoSizesHaveTilesOf128) {
  LaunchArgs args = some_args();
  args.problem.head_size_qk = 192;
  const auto made = make(forward_128_none_batch, args);
  expect_grid(made.launch, 5, 6, 3);
  EXPECT_EQ(made.args.tile_stride_q, 128 * 2048u);
  EXPECT_EQ(made.args.head_size_qk, 192u);
  EXPECT_EQ(made.args.head_size_v, 128u);
  args.problem.mode = ATTN_MODE_GROUP;
  expect_grid(make(forward_128_causal_group, args).launch, 6, 3, 3);
}

TEST(AsmLaunch, TheOptionIsOfHeadsAndLengths) {
  LaunchArgs args = some_args();
  EXPECT_EQ(make(forward_256_causal_batch, args).args.option, 3u);
  args.problem.heads_q = 16;
  EXPECT_EQ(make(forward_256_causal_batch, args).args.option, 5u);
  args.problem.seqlen_q = 16384;
  EXPECT_EQ(make(forward_256_causal_batch, args).args.option, 5u);
  args.problem.seqlen_q = 16385;
  EXPECT_EQ(make(forward_256_causal_batch, args).args.option, 3u);
  EXPECT_EQ(make(forward_256_none_batch, args).args.option, 5u);
}

TEST(AsmLaunch, WithoutLse) {
  LaunchArgs args = some_args();
  args.lse = nullptr;
  EXPECT_EQ(make(forward_256_none_batch, args).args.store_lse, 0u);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::kernels::aiter_asm
