// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Choices from tables of a test's own; choices_test.py has those from the library's.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <tuple>
#include <utility>

#include "aiter/norm/configure.h"

namespace AITER_ATTN_NAMESPACE::norm {
namespace {

using kernels::TunedRow;

constexpr DeviceTraits kHopper = {32, true, true, 227 << 10};
constexpr DeviceTraits kGfx942 = {64, false, false, 64 << 10};

auto numbers(const RowConfiguration& c) {
  return std::tuple(c.threads, c.lanes, c.cluster, c.stages, c.ctas_per_sm, c.waves, c.keep_weights,
                    c.hold_row, c.lag, c.on_demand);
}

// Of dense rows: x_bytes are those of an element, all_bytes those of a column of all matrices.
RowTraits rows(int64_t hidden, int vector, int x_bytes, int all_bytes, int weight_bytes = 0) {
  return {hidden, vector, x_bytes, all_bytes, weight_bytes, 0, true};
}

// A row serves smaller sizes down to the row above, with as many vectors to a thread.
TEST(Choose, LanesFollowTheWidth) {
  const RowConfiguration c = {768, 384, 1, 0, 1, 0, 0, 1, 0, 0};
  const TunedRow tuned[] = {{1024, {128, 16, 1, 0, 1, 0, 0, 1, 0, 0}}, {6144, c}};
  const RowConfigurations table = {tuned, 2, c};
  for (const auto& [hidden, lanes] : std::array<std::pair<int, int>, 5>{
           {{6144, 384}, {6143, 384}, {5120, 320}, {1544, 128}, {1032, 96}}}) {
    RowConfiguration narrow = c;
    narrow.lanes = lanes;
    narrow.threads = 2 * lanes;
    EXPECT_EQ(numbers(choose(table, rows(hidden, 8, 2, 2), kHopper)), numbers(narrow)) << hidden;
    EXPECT_LE(hidden, 2 * 8 * lanes) << hidden;
    // Of four bytes an element, half as many columns are as wide.
    const int of_half = choose(table, rows(hidden / 2, 4, 4, 4), kHopper).lanes;
    EXPECT_TRUE(of_half == lanes || of_half == lanes - 32) << hidden;
  }
  EXPECT_EQ(choose(table, rows(1000, 8, 2, 2), kHopper).lanes, 16);
  EXPECT_EQ(numbers(choose(table, rows(6145, 8, 2, 2), kHopper)), numbers(table.general));
}

TEST(Choose, LanesAreWholeWaves) {
  const RowConfiguration c = {192, 96, 1, 0, 1, 0, 0, 1, 0, 0};
  const TunedRow tuned[] = {{1536, c}};
  const RowConfiguration narrow = choose({tuned, 1, c}, rows(1536, 8, 2, 2), kGfx942);
  EXPECT_EQ(narrow.lanes, 128);
  EXPECT_EQ(narrow.threads, 128);
}

TEST(Choose, ARingThatDoesNotFitLosesSlotsFirst) {
  const RowConfiguration fits = {512, 512, 16, 4, 1, 1, 2, 1, 1, 0};
  const RowConfigurations table = {nullptr, 0, fits};
  EXPECT_EQ(numbers(choose(table, rows(131072, 8, 2, 4), kHopper)), numbers(fits));
  RowConfiguration wide = choose(table, rows(131072, 8, 2, 12), kHopper);
  EXPECT_LT(wide.stages, fits.stages);
  wide.stages = fits.stages;
  EXPECT_EQ(numbers(wide), numbers(fits));
}

TEST(Choose, WeightsThatDoNotFitAreReadForEveryRow) {
  const RowConfiguration kept = {128, 128, 8, 2, 3, 1, 3, 1, 0, 1};
  const RowConfigurations table = {nullptr, 0, kept};
  EXPECT_EQ(choose(table, rows(65536, 8, 2, 2, 1 << 10), kHopper).keep_weights, 0);
  EXPECT_EQ(numbers(choose(table, rows(65536, 8, 2, 2, 4), kHopper)), numbers(kept));
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::norm
