// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
// GoogleTest as the C++ tests use it: no main() here, matchers, exceptions, death tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <vector>

namespace {

TEST(GoogleTest, Matchers) {
  EXPECT_THAT((std::vector<int>{1, 2, 3}), testing::ElementsAre(1, testing::Gt(1), 3));
}

TEST(GoogleTest, Exceptions) {
  EXPECT_THROW(throw std::invalid_argument("thrown"), std::invalid_argument);
}

TEST(GoogleTestDeathTest, Exit) { EXPECT_EXIT(std::exit(3), testing::ExitedWithCode(3), ""); }

}  // namespace
