// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/passes/kvcache/splits.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

constexpr int32_t kUnits = 100;  // 200 workgroups at a time

TEST(SplitsTest, AFullGpuNeedsNone) {
  EXPECT_EQ(choose_splits(160, 64, kUnits), 1);
  EXPECT_EQ(choose_splits(100000, 64, kUnits), 1);
  EXPECT_EQ(choose_splits(int64_t{1} << 61, 64, kUnits), 1);
}

TEST(SplitsTest, TheFewestThatComeNearTheBest) {
  EXPECT_EQ(choose_splits(100, 64, kUnits), 2) << "fills it";
  EXPECT_EQ(choose_splits(50, 64, kUnits), 4) << "fills it";
  EXPECT_EQ(choose_splits(159, 64, kUnits), 5) << "795 of 800";
  EXPECT_EQ(choose_splits(90, 64, kUnits), 2) << "180 of 200 is near the best";
  EXPECT_EQ(choose_splits(1, 64, kUnits), 7) << "8 would be 8 of 200";
}

TEST(SplitsTest, NoMoreThanTilesOfKeys) {
  EXPECT_EQ(choose_splits(1, 1, kUnits), 1);
  EXPECT_EQ(choose_splits(1, 3, kUnits), 3);
  // 4 tiles: 3 splits have parts of 2 tiles, as 2 have.
  EXPECT_EQ(choose_splits(60, 4, kUnits), 2);
  EXPECT_EQ(choose_splits(1, 4, kUnits), 4);
}

TEST(SplitsTest, NoMoreThanKernelsCombine) {
  EXPECT_LE(choose_splits(1, 100000, 304), kernels::kMostSplits);
}

TEST(SplitsTest, AnArchThatIsNotKnownIsNotSplitFor) { EXPECT_EQ(choose_splits(1, 64, 0), 1); }

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention
