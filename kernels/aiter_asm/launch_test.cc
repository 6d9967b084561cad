// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "gtest/gtest.h"
#include "kernels/aiter_asm/forward_arguments.h"
#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::kernels::aiter_asm {

void forward_256_none_batch(const LaunchArgs& args, Launch* launch);
void forward_256_none_group(const LaunchArgs& args, Launch* launch);
void forward_256_causal_batch(const LaunchArgs& args, Launch* launch);
void forward_256_causal_group(const LaunchArgs& args, Launch* launch);
void forward_128_none_batch(const LaunchArgs& args, Launch* launch);
void forward_128_causal_group(const LaunchArgs& args, Launch* launch);

namespace {

struct Made {
  Launch launch = {};
  ForwardArguments args = {};
};

Made make(MakeLaunch make_launch, const LaunchArgs& args) {
  alignas(16) unsigned char kernarg[kMostKernargSize];
  Made made;
  made.launch.kernarg = kernarg;
  make_launch(args, &made.launch);
  EXPECT_EQ(made.launch.kernarg_size, 512u);
  EXPECT_EQ(made.launch.dynamic_lds, 0u);
  std::memcpy(&made.args, kernarg, sizeof(made.args));
  return made;
}

void expect_grid(const Made& made, uint32_t x, uint32_t y, uint32_t z) {
  EXPECT_EQ(made.launch.grid[0], x);
  EXPECT_EQ(made.launch.grid[1], y);
  EXPECT_EQ(made.launch.grid[2], z);
}

float lse;

// 3 batch entries of 600 queries and 700 keys; strides of q are unlike those of a contiguous
// tensor.
LaunchArgs some_args() {
  LaunchArgs args = {};
  args.problem.mode = ATTN_MODE_BATCH;
  args.problem.batch = 3;
  args.problem.heads_q = 6;
  args.problem.heads_k = 2;
  args.problem.head_size_qk = args.problem.head_size_v = 128;
  args.problem.seqlen_q = 600;
  args.problem.seqlen_k = 700;
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
  const Made made = make(forward_256_none_batch, args);
  expect_grid(made, 3, 6, 3);
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
  const int32_t starts_q[4] = {}, starts_k[4] = {};
  args.problem.mode = ATTN_MODE_GROUP;
  args.problem.total_q = 1000;
  args.problem.total_k = 1100;
  args.problem.cu_seqlens_q = starts_q;
  args.problem.cu_seqlens_k = starts_k;
  const Made made = make(forward_256_none_group, args);
  expect_grid(made, 6, 3, 3);
  EXPECT_EQ(made.args.seqlen_q, 1000u);
  EXPECT_EQ(made.args.seqlen_k, 1100u);
  EXPECT_EQ(made.args.batch_stride_q, 0u);
  EXPECT_EQ(made.args.head_stride_lse, 4000u);
  EXPECT_EQ(made.args.seqstart_q, starts_q);
  EXPECT_EQ(made.args.padded_seqstart_q, starts_q);
  EXPECT_EQ(made.args.seqstart_k, starts_k);
  EXPECT_EQ(made.args.padded_seqstart_k, starts_k);
  expect_grid(make(forward_256_causal_group, args), 6, 3, 2);
}

TEST(AsmLaunch, WithAMaskAWorkgroupHasTwoTiles) {
  LaunchArgs args = some_args();
  expect_grid(make(forward_256_causal_batch, args), 2, 6, 3);
  args.problem.seqlen_q = 513;
  expect_grid(make(forward_256_causal_batch, args), 2, 6, 3);
  args.problem.seqlen_q = 512;
  expect_grid(make(forward_256_causal_batch, args), 1, 6, 3);
}

TEST(AsmLaunch, HeadsOfTwoSizesHaveTilesOf128) {
  LaunchArgs args = some_args();
  args.problem.head_size_qk = 192;
  const Made made = make(forward_128_none_batch, args);
  expect_grid(made, 5, 6, 3);
  EXPECT_EQ(made.args.tile_stride_q, 128 * 2048u);
  EXPECT_EQ(made.args.head_size_qk, 192u);
  EXPECT_EQ(made.args.head_size_v, 128u);
  args.problem.mode = ATTN_MODE_GROUP;
  expect_grid(make(forward_128_causal_group, args), 6, 3, 3);
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
