// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/once.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/support/runtime/forked_child.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

// Here they are static, as everywhere: the values that they made are never freed.

TEST(OnceTest, TheFirstValueIsEveryones) {
  static Once<const int> once;
  EXPECT_EQ(once.get([] { return std::make_unique<const int>(1); }), 1);
  EXPECT_EQ(once.get([] { return std::make_unique<const int>(2); }), 1);
}

TEST(OnceTest, WhatIsThrownIsTriedAgain) {
  static Once<const int> once;
  const auto fail = []() -> std::unique_ptr<const int> { throw std::runtime_error("no"); };
  EXPECT_THROW(once.get(fail), std::runtime_error);
  EXPECT_EQ(once.get([] { return std::make_unique<const int>(3); }), 3);
}

TEST(OnceTest, ThreadsThatComeAtOnceGetTheSame) {
  static Once<std::atomic<int>> rounds[100];
  for (Once<std::atomic<int>>& once : rounds) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back(
          [&] { ++once.get([] { return std::make_unique<std::atomic<int>>(0); }); });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(once.get([] { return std::make_unique<std::atomic<int>>(0); }), 8);
  }
}

TEST(OnceTest, AChildForkedWhileItIsMadeMakesItsOwn) {
  static Once<const int> once;
  std::promise<void> begun, released;
  std::thread maker([&] {
    once.get([&] {
      begun.set_value();
      released.get_future().wait();
      return std::make_unique<const int>(4);
    });
  });
  begun.get_future().wait();
  EXPECT_EQ(testing::in_forked_child(
                [] { return once.get([] { return std::make_unique<const int>(5); }); }),
            5);
  released.set_value();
  maker.join();
  EXPECT_EQ(once.get([] { return std::make_unique<const int>(6); }), 4);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
