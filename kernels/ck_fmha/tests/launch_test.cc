// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The launch code of every direction, on the variant set `directions`: the fields of LaunchArgs
// arrive in the kernel arguments. That the places are right shows where kernels are executed.
#include <cstring>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::kernels {
namespace {

// A value that nothing else has, by which it is found again.
template <typename T>
T* address(uint64_t number) {
  return reinterpret_cast<T*>(0x7000000000000000u + number * 0x10000);
}

struct Made {
  Launch launch = {};
  std::vector<unsigned char> kernarg = std::vector<unsigned char>(kMostKernargSize);

  template <typename T>
  bool holds(T value) const {
    const std::string_view all(reinterpret_cast<const char*>(kernarg.data()), launch.kernarg_size);
    return all.find({reinterpret_cast<const char*>(&value), sizeof(value)}) !=
           std::string_view::npos;
  }
};

LaunchArgs some_args() {
  LaunchArgs args = {};
  attn_problem& p = args.problem;
  p.batch = 3;
  p.heads_q = p.heads_k = 5;
  p.head_size_qk = p.head_size_v = 64;
  p.seqlen_q = 200;
  p.seqlen_k = 300;
  p.softmax_scale = 0.5f;
  args.q.data = address<void>(1);
  args.k = {address<void>(2), 70001, 70002, 70003};
  args.v = {address<void>(3), 70004, 70005, 70006};
  args.o.data = address<void>(4);
  args.lse = address<float>(5);
  args.dout.data = address<void>(6);
  args.delta = address<float>(7);
  args.dq.data = address<void>(8);
  args.dk.data = address<void>(9);
  args.dv.data = address<void>(10);
  args.dq_acc = address<float>(11);
  Features& f = args.features;
  f.bias = address<void>(12);
  f.dbias = address<void>(13);
  f.bias_stride_batch = 80001;
  f.bias_stride_head = 80002;
  f.bias_stride_seq = 80003;
  f.logits_soft_cap = 30.0f;
  f.p_drop = 0.25f;
  f.drop_seed = 0x123456789abcdef0u;
  f.drop_offset = 0x0fedcba987654321u;
  f.min_seqlen_q = 90001;
  f.dq_acc_stride_split = 90002;
  f.splits = 7;
  f.o_acc = address<float>(14);
  f.lse_acc = address<float>(15);
  f.block_table = address<const int32_t>(16);
  f.block_table_stride = 90003;
  f.page_size = 128;
  f.seqlens_k = address<const int32_t>(17);
  f.pages = 90004;
  f.page_indptr = address<const int32_t>(20);
  f.page_indices = address<const int32_t>(21);
  f.batch_index = address<const int32_t>(22);
  f.seqlen_new = 70;
  f.k_new = {address<void>(23), 70007, 70008, 70009};
  f.v_new = {address<void>(24), 70010, 70011, 70012};
  f.rotary_size = 48;
  f.rotary_cos = address<void>(25);
  f.rotary_sin = address<void>(26);
  return args;
}

Made make(Kind kind, LaunchArgs args = some_args(), uint32_t work_items = 0) {
  Made made;
  made.launch.work_items = work_items;
  const LaunchTable& table = launch_table();
  for (uint32_t i = 0; i < table.row_count(); ++i) {
    const Row& row = table.row(i);
    if (row.traits.kind != kind) continue;
    if (row.traits.group_mode) {
      args.problem.cu_seqlens_q = address<const int32_t>(18);
      args.problem.cu_seqlens_k = address<const int32_t>(19);
      args.problem.total_q = 450;
      args.problem.total_k = 650;
      args.problem.mask = ATTN_MASK_BOTTOM_RIGHT;
      args.problem.window_left = -1;
    }
    made.launch.kernarg = made.kernarg.data();
    table.launch(row)(args, &made.launch);
    EXPECT_EQ(row.kernarg_size, 0u) << "no bytes were built";
    EXPECT_EQ(table.arch_count(), 0u);
    return made;
  }
  ADD_FAILURE() << "the set has no " << name_of(kind);
  return made;
}

TEST(LaunchCode, Forward) {
  const Made made = make(Kind::kFwd);
  for (const int number : {1, 2, 3, 4, 5, 12}) EXPECT_TRUE(made.holds(address<void>(number)));
  for (const int32_t stride : {80001, 80002, 80003}) EXPECT_TRUE(made.holds(stride));
  EXPECT_TRUE(made.holds(uint64_t{0x123456789abcdef0u}));
  EXPECT_TRUE(made.holds(uint64_t{0x0fedcba987654321u}));
  EXPECT_TRUE(made.holds(1.0f / 0.75f));
}

TEST(LaunchCode, Backward) {
  const Made dot_do_o = make(Kind::kBwdDotDoO);
  for (const int number : {4, 6, 7}) EXPECT_TRUE(dot_do_o.holds(address<void>(number)));
  EXPECT_TRUE(dot_do_o.holds(0.75f));  // p_undrop

  const Made main = make(Kind::kBwdDqDkDv);
  for (const int number : {1, 2, 3, 5, 6, 7, 9, 10, 11, 12, 13}) {
    EXPECT_TRUE(main.holds(address<void>(number))) << number;
  }
  for (const int32_t number : {80001, 80002, 80003, 90002}) EXPECT_TRUE(main.holds(number));
  EXPECT_TRUE(main.holds(uint64_t{0x123456789abcdef0u}));

  const Made convert = make(Kind::kBwdConvertDq);
  for (const int number : {8, 11}) EXPECT_TRUE(convert.holds(address<void>(number)));
  EXPECT_TRUE(convert.holds(int32_t{90002}));
}

TEST(LaunchCode, SplitAndPagedKeys) {
  const Made split = make(Kind::kFwdSplitkv);
  for (const int number : {1, 2, 3, 14, 15, 16, 17, 18, 19}) {
    EXPECT_TRUE(split.holds(address<void>(number))) << number;
  }
  EXPECT_TRUE(split.holds(int32_t{7}));
  EXPECT_TRUE(split.holds(int32_t{128}));
  EXPECT_TRUE(split.holds(int32_t{90003}));
  EXPECT_TRUE(split.holds(int32_t{70001})) << "the stride between pages";
  EXPECT_TRUE(split.holds(int32_t{450 * 64})) << "between the splits of o_acc";
  EXPECT_TRUE(split.holds(int32_t{7 * 450 * 64})) << "between its heads";
  EXPECT_EQ(split.launch.grid[1], 5u);
  EXPECT_EQ(split.launch.grid[2], 3u);
}

TEST(LaunchCode, CombinationOfSplits) {
  const Made combine = make(Kind::kFwdSplitkvCombine);
  for (const int number : {4, 5, 14, 15}) EXPECT_TRUE(combine.holds(address<void>(number)));
  EXPECT_TRUE(combine.holds(int32_t{7 * 450})) << "between the heads of lse_acc";

  // Four waves of 64, and of 32: these combine half as many rows.
  const Made wide = make(Kind::kFwdSplitkvCombine, some_args(), 256);
  const Made narrow = make(Kind::kFwdSplitkvCombine, some_args(), 128);
  EXPECT_EQ(wide.launch.grid[0], combine.launch.grid[0]);
  EXPECT_EQ(narrow.launch.grid[0], 2 * wide.launch.grid[0]);
}

TEST(LaunchCode, PagedKeys) {
  const Made paged = make(Kind::kFwdPagedkv);
  for (const int number : {1, 2, 3, 4, 16, 17, 18}) {
    EXPECT_TRUE(paged.holds(address<void>(number))) << number;
  }
  for (const int32_t number : {90001, 90003, 70001, 128}) EXPECT_TRUE(paged.holds(number));
}

TEST(LaunchCode, AppendedKeys) {
  LaunchArgs args = some_args();
  args.q = {address<void>(1), 70013, 70014, 70015};
  args.problem.mask = ATTN_MASK_BOTTOM_RIGHT;
  const Made append = make(Kind::kFwdAppendkv, args);
  for (const int number : {1, 2, 3, 16, 17, 23, 24, 25, 26}) {
    EXPECT_TRUE(append.holds(address<void>(number))) << number;
  }
  for (int32_t stride = 70001; stride <= 70015; ++stride) {
    EXPECT_TRUE(append.holds(stride)) << stride;
  }
  for (const int32_t number : {48, 70, 128, 200, 90003}) EXPECT_TRUE(append.holds(number));
  // A tile has 64 queries and 64 new keys, for each head of q.
  EXPECT_EQ(append.launch.grid[0], 4u);
  EXPECT_EQ(append.launch.grid[1], 5u);
  EXPECT_EQ(append.launch.grid[2], 3u);
}

TEST(LaunchCode, BatchPrefill) {
  const Made prefill = make(Kind::kFwdBatchPrefill);
  for (const int number : {1, 2, 3, 4, 5, 12, 18, 20, 21}) {
    EXPECT_TRUE(prefill.holds(address<void>(number))) << number;
  }
  EXPECT_TRUE(prefill.holds(int32_t{90004}));
  EXPECT_TRUE(prefill.holds(int32_t{70001})) << "a page is a key";
  EXPECT_TRUE(prefill.holds(int32_t{80003})) << "the stride of slopes";
  EXPECT_EQ(prefill.launch.grid[0], 5u);
  EXPECT_EQ(prefill.launch.grid[1], 3u);
  EXPECT_EQ(prefill.launch.grid[2], 2u);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::kernels
