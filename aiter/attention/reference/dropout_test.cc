// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The random numbers of dropout against published ones. The tests of the package and of kernels
// compare those of kernels with another implementation.
#include "aiter/attention/reference/dropout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using ::testing::ElementsAre;

// The known answers that the authors of Philox publish with their Random123 library.
TEST(DropoutTest, TheGeneratorIsPhilox) {
  EXPECT_THAT(philox4x32({0, 0, 0, 0}, 0, 7),
              ElementsAre(0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48));
  EXPECT_THAT(philox4x32({~0u, ~0u, ~0u, ~0u}, ~uint64_t{0}, 7),
              ElementsAre(0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662));
  EXPECT_THAT(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822, 10),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

attn_problem with(float p) {
  attn_problem problem = {};
  problem.heads_q = 2;
  problem.dropout_p = p;
  return problem;
}

TEST(DropoutTest, WithoutDropoutAllStay) {
  const Dropout dropout(with(0), 0, 0);
  EXPECT_FALSE(dropout.drops());
  EXPECT_TRUE(dropout.keeps(3, 5));
  EXPECT_EQ(dropout.factor(), 1);
}

TEST(DropoutTest, TheShareThatStaysIsAsAskedFor) {
  for (const float p : {0.004f, 0.1f, 0.5f, 0.996f}) {
    const Dropout dropout(with(p), 1, 1);
    int kept = 0;
    for (int i = 0; i < 500; ++i) {
      for (int j = 0; j < 500; ++j) kept += dropout.keeps(i, j);
    }
    // Upstream compares bytes: the share is a multiple of 1/256.
    EXPECT_NEAR(kept / 250000.0, 1 - p, 0.004 + 0.003) << p;
    EXPECT_DOUBLE_EQ(dropout.factor(), 1 / (1 - double{p}));
  }
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention
