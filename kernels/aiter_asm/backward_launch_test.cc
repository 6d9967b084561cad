// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "gtest/gtest.h"
#include "kernels/aiter_asm/backward_arguments.h"
#include "kernels/launch_table/launch_table.h"
#include "tests/support/attention/made_launch.h"

namespace AITER_ATTN_NAMESPACE::kernels::aiter_asm {

#define AITER_ASM_DECLARE(name, ...) void name(const LaunchArgs& args, Launch* launch);
AITER_ASM_BACKWARD_LAUNCHES(AITER_ASM_DECLARE)
#undef AITER_ASM_DECLARE

namespace {

using testing::expect_grid;
using testing::make_launch;

float numbers[12];

// 3 batch entries of 300 queries and 700 keys; no two strides are the same.
LaunchArgs some_args() {
  LaunchArgs args = testing::launch_args(6, 2, 300, 700);
  args.problem.head_size_qk = args.problem.head_size_v = 104;
  args.problem.softmax_scale = 0.25f;
  args.q = {&numbers[0], 1000000, 1024, 136};
  args.k = {&numbers[1], 200000, 256, 128};
  args.v = {&numbers[2], 300000, 264, 144};
  args.dout = {&numbers[3], 500000, 768, 152};
  args.dk = {&numbers[4], 600000, 624, 104};
  args.dv = {&numbers[5], 700000, 632, 112};
  args.o.data = args.dq.data = &numbers[6];
  args.lse = &numbers[7];
  args.delta = &numbers[8];
  args.dq_acc = &numbers[9];
  return args;
}

// In bytes.
template <typename Arguments>
void expect_strides_of_q_and_k(const Arguments& made) {
  EXPECT_EQ(made.stride_q, 2048u);
  EXPECT_EQ(made.head_stride_q, 272u);
  EXPECT_EQ(made.batch_stride_q, 2000000u);
  EXPECT_EQ(made.stride_k, 512u);
  EXPECT_EQ(made.head_stride_k, 256u);
  EXPECT_EQ(made.batch_stride_k, 400000u);
}

TEST(AsmBackwardLaunch, BatchMode) {
  const LaunchArgs args = some_args();
  const auto made = make_launch<BackwardGeneralArguments>(backward_general_192_1, args);
  expect_grid(made.launch, 4, 6, 3);
  EXPECT_EQ(made.args.dq, args.dq_acc);
  EXPECT_EQ(made.args.dk, args.dk.data);
  EXPECT_EQ(made.args.dv, args.dv.data);
  EXPECT_EQ(made.args.q, args.q.data);
  EXPECT_EQ(made.args.k, args.k.data);
  EXPECT_EQ(made.args.v, args.v.data);
  EXPECT_EQ(made.args.do_, args.dout.data);
  EXPECT_EQ(made.args.lse, args.lse);
  EXPECT_EQ(made.args.delta, args.delta);
  EXPECT_EQ(made.args.scale, 0.25f);
  EXPECT_FLOAT_EQ(made.args.log2e, 1.442695f);
  EXPECT_EQ(made.args.heads_q_per_head_k, 3u);
  EXPECT_EQ(made.args.seqlen_q, 300u);
  EXPECT_EQ(made.args.seqlen_k, 700u);
  EXPECT_EQ(made.args.head_size_qk, 104u);
  EXPECT_EQ(made.args.heads_q, 6u);
  expect_strides_of_q_and_k(made.args);
  EXPECT_EQ(made.args.stride_v, 528u);
  EXPECT_EQ(made.args.head_stride_v, 288u);
  EXPECT_EQ(made.args.batch_stride_v, 600000u);
  EXPECT_EQ(made.args.stride_do, 1536u);
  EXPECT_EQ(made.args.head_stride_do, 304u);
  EXPECT_EQ(made.args.batch_stride_do, 1000000u);
  EXPECT_EQ(made.args.stride_dk, 1248u);
  EXPECT_EQ(made.args.head_stride_dk, 208u);
  EXPECT_EQ(made.args.batch_stride_dk, 1200000u);
  EXPECT_EQ(made.args.stride_dv, 1264u);
  EXPECT_EQ(made.args.head_stride_dv, 224u);
  EXPECT_EQ(made.args.batch_stride_dv, 1400000u);
}

TEST(AsmBackwardLaunch, GroupModeHasTheTotalOfKeysAndNoBatchStrides) {
  LaunchArgs args = some_args();
  const testing::Group sequences = {1000, 1100};
  sequences.set(&args);
  const auto made = make_launch<BackwardGroupArguments>(backward_group_192_2, args);
  expect_grid(made.launch, 2, 6, 3);
  EXPECT_EQ(made.args.seqlen_k, 1100u);
  EXPECT_EQ(made.args.head_stride_lse, 4000u);
  EXPECT_EQ(made.args.seqstart_q, sequences.starts_q);
  EXPECT_EQ(made.args.padded_seqstart_q, sequences.starts_q);
  EXPECT_EQ(made.args.seqstart_k, sequences.starts_k);
  EXPECT_EQ(made.args.padded_seqstart_k, sequences.starts_k);
  EXPECT_EQ(made.args.dq, args.dq_acc);
  EXPECT_EQ(made.args.stride_dv, 1264u);
  EXPECT_EQ(made.args.head_stride_dv, 224u);
  EXPECT_EQ(made.args.head_size_qk, 104u);
}

TEST(AsmBackwardLaunch, KernelsOfGfx950HaveAllArgumentsAtOnce) {
  LaunchArgs args = some_args();
  args.problem.head_size_qk = 192;
  args.problem.head_size_v = 128;
  const auto batch = make_launch<BackwardNativeArguments>(backward_native_192_1, args);
  expect_grid(batch.launch, 4, 6, 3);
  EXPECT_EQ(batch.args.dq, args.dq_acc);
  EXPECT_EQ(batch.args.seqlen_q, 300u);
  EXPECT_EQ(batch.args.seqlen_k, 700u);
  EXPECT_EQ(batch.args.tile_stride_k, 192 * 512u);
  EXPECT_EQ(batch.args.batch_stride_dv, 1400000u);
  EXPECT_EQ(batch.args.head_size_qk, 192u);
  EXPECT_EQ(batch.args.head_size_v, 128u);
  EXPECT_EQ(batch.args.heads_q, 6u);
  EXPECT_EQ(batch.args.head_stride_lse, 1200u);
  EXPECT_EQ(batch.args.seqstart_q, nullptr);
  EXPECT_EQ(batch.args.max_seqlen_dq, 300u);

  const testing::Group sequences = {1000, 1100};
  sequences.set(&args);
  const auto group = make_launch<BackwardNativeArguments>(backward_native_256_2, args);
  expect_grid(group.launch, 2, 6, 3);
  EXPECT_EQ(group.args.seqlen_q, 1000u);
  EXPECT_EQ(group.args.seqlen_k, 1100u);
  EXPECT_EQ(group.args.tile_stride_k, 256 * 512u);
  EXPECT_EQ(group.args.batch_stride_q, 0u);
  EXPECT_EQ(group.args.head_stride_lse, 4000u);
  EXPECT_EQ(group.args.seqstart_q, sequences.starts_q);
  EXPECT_EQ(group.args.padded_seqstart_k, sequences.starts_k);
  EXPECT_EQ(group.args.max_seqlen_dq, 300u);
}

TEST(AsmBackwardLaunch, WholeTilesHaveOneLengthAndStridesOfQAndK) {
  LaunchArgs args = some_args();
  args.problem.head_size_qk = args.problem.head_size_v = 128;
  args.problem.seqlen_q = args.problem.seqlen_k = 448;
  const auto made = make_launch<BackwardPlainArguments>(backward_plain_192_2, args);
  expect_grid(made.launch, 2, 6, 3);
  EXPECT_EQ(made.args.dq, args.dq_acc);
  EXPECT_EQ(made.args.dv, args.dv.data);
  EXPECT_EQ(made.args.do_, args.dout.data);
  EXPECT_EQ(made.args.seqlen, 448u);
  EXPECT_EQ(made.args.tile_stride_k, 192 * 512u);
  expect_strides_of_q_and_k(made.args);
  EXPECT_EQ(made.args.stride_dk, 1248u);
  EXPECT_EQ(made.args.heads_q_per_head_k, 3u);
  EXPECT_EQ(make_launch<BackwardPlainArguments>(backward_plain_192_1, args).launch.grid[0], 3u);
}

TEST(AsmBackwardLaunch, AWorkgroupHasOneOrTwoTilesOfKeys) {
  LaunchArgs args = some_args();
  const auto tiles = [&args](MakeLaunch function) {
    return make_launch<BackwardGeneralArguments>(function, args).launch.grid[0];
  };
  EXPECT_EQ(tiles(backward_general_192_2), 2u);
  EXPECT_EQ(tiles(backward_general_64_1), 11u);
  EXPECT_EQ(tiles(backward_general_64_2), 6u);
  args.problem.seqlen_k = 384;
  EXPECT_EQ(tiles(backward_general_192_2), 1u);
  args.problem.seqlen_k = 385;
  EXPECT_EQ(tiles(backward_general_192_2), 2u);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::kernels::aiter_asm
