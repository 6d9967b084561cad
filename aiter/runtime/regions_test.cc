// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/regions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <random>
#include <set>
#include <string>

#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

Region region(int64_t first, int64_t width, std::initializer_list<Region::Step> steps) {
  Region region = {"", first, width, {}, steps.size(), first, first + width};
  std::copy(steps.begin(), steps.end(), region.steps.begin());
  for (const Region::Step& step : steps) {
    const int64_t reach = step.stride * (step.extent - 1);
    (reach < 0 ? region.begin : region.end) += reach;
  }
  return region;
}

std::set<int64_t> bytes_of(const Region& r) {
  std::set<int64_t> rows = {r.first}, bytes;
  for (size_t s = 0; s < r.step_count; ++s) {
    std::set<int64_t> more;
    for (const int64_t row : rows) {
      for (int64_t i = 0; i < r.steps[s].extent; ++i) more.insert(row + i * r.steps[s].stride);
    }
    rows = more;
  }
  for (const int64_t row : rows) {
    for (int64_t i = 0; i < r.width; ++i) bytes.insert(row + i);
  }
  return bytes;
}

std::string text(const Region& r) {
  std::string text = std::to_string(r.first) + "+" + std::to_string(r.width);
  for (size_t s = 0; s < r.step_count; ++s) {
    text += " " + std::to_string(r.steps[s].stride) + "x" + std::to_string(r.steps[s].extent);
  }
  return text;
}

TEST(RegionsTest, AgreesWithByteByByte) {
  std::mt19937 random(7);
  const auto number = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  const auto any_region = [&] {
    Region::Step steps[3];
    for (Region::Step& step : steps) step = {number(-40, 40), number(1, 5)};
    // Strides of one buffer's parts have much in common.
    if (number(0, 1)) {
      const int64_t unit = number(2, 12);
      for (Region::Step& step : steps) step.stride = step.stride / 8 * unit;
    }
    return region(1000 + number(0, 60), number(1, 6), {steps[0], steps[1], steps[2]});
  };
  int counts[2] = {};
  for (int i = 0; i < 30000; ++i) {
    const Region a = any_region(), b = any_region();
    const std::set<int64_t> ours = bytes_of(a), theirs = bytes_of(b);
    const bool share = std::any_of(ours.begin(), ours.end(),
                                   [&](int64_t byte) { return theirs.count(byte) != 0; });
    const Sharing expected = share ? Sharing::kSome : Sharing::kNone;
    ASSERT_EQ(sharing(a, b), expected) << text(a) << " and " << text(b);
    ASSERT_EQ(sharing(b, a), expected) << text(b) << " and " << text(a);
    ++counts[share];
  }
  EXPECT_GT(counts[0], 5000);
  EXPECT_GT(counts[1], 5000);
}

TEST(RegionsTest, RowsThatTouchShareNothing) {
  EXPECT_EQ(sharing(region(0, 8, {}), region(8, 8, {})), Sharing::kNone);
  EXPECT_EQ(sharing(region(0, 9, {}), region(8, 8, {})), Sharing::kSome);
  EXPECT_EQ(sharing(region(0, 8, {{16, 4}}), region(8, 8, {{16, 4}})), Sharing::kNone);
  EXPECT_EQ(sharing(region(0, 9, {{16, 4}}), region(8, 8, {{16, 4}})), Sharing::kSome);
  EXPECT_EQ(sharing(region(48, 8, {{-16, 4}}), region(8, 8, {{16, 4}})), Sharing::kNone);
}

// [batch, seqlen, 3, heads, head_size] and the like, at sizes that no enumeration would get
// through.
TEST(RegionsTest, PartsOfOneLargeBuffer) {
  constexpr int64_t kBatch = 1 << 10, kSeq = 1 << 17, kHeads = 128, kRow = 256;
  const auto tensor = [&](int64_t at, int64_t heads) {
    return region(at * kRow, kRow,
                  {{kSeq * 3 * kHeads * kRow, kBatch}, {3 * kHeads * kRow, kSeq}, {kRow, heads}});
  };
  EXPECT_EQ(sharing(tensor(0, kHeads), tensor(kHeads, kHeads)), Sharing::kNone);
  EXPECT_EQ(sharing(tensor(0, kHeads + 1), tensor(kHeads, kHeads)), Sharing::kSome);
  EXPECT_EQ(sharing(tensor(2 * kHeads, kHeads), tensor(0, 2 * kHeads)), Sharing::kNone);
  // Every other token, and every fourth of the rest.
  const Region even = region(0, kRow, {{2 * kRow, kSeq}});
  EXPECT_EQ(sharing(even, region(kRow, kRow, {{4 * kRow, kSeq / 2}})), Sharing::kNone);
  EXPECT_EQ(sharing(even, region(kRow - 1, kRow, {{4 * kRow, kSeq / 2}})), Sharing::kSome);
}

TEST(RegionsTest, WhatIsNotWorthTheTimeIsUndecided) {
  // From the distance, whole numbers of two great primes are to be taken, in 200,000 ways or more.
  constexpr int64_t kPrime = 1000003, kOther = 1000033, kFar = int64_t{1} << 42;
  const Region a = region(kFar, 1, {{kPrime, 1 << 20}});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(sharing(a, region(kFar + kPrime * 200000 + 1, 1, {{-kOther, 1 << 20}})),
            Sharing::kUndecided);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_EQ(sharing(a, region(kFar + kPrime * 200000 + 7 * kOther, 1, {{-kOther, 1 << 20}})),
            Sharing::kSome);
}

TEST(RegionsTest, AnOutputThatSharesMemoryOrMayIsRefused) {
  const auto named = [](Region region, const char* name) {
    region.name = name;
    return region;
  };
  const auto refusal = [&](const Region& output, const Region& other) -> std::string {
    try {
      refuse_sharing(named(output, "y"), named(other, "x"));
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::kInvalidArgument);
      return error.what();
    }
  };
  EXPECT_EQ(refusal(region(0, 8, {}), region(8, 8, {})), "");
  EXPECT_EQ(refusal(region(0, 9, {}), region(8, 8, {})).rfind("y overlaps x: ", 0), 0);
  const int64_t prime = 1000003, other = 1000033, far = int64_t{1} << 42;
  EXPECT_EQ(refusal(region(far, 1, {{prime, 1 << 20}}),
                    region(far + prime * 200000 + 1, 1, {{-other, 1 << 20}}))
                .rfind("whether y overlaps x takes too long to tell", 0),
            0);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
