// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/fork_mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/support/runtime/forked_child.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using testing::in_forked_child;

TEST(ForkMutex, IsFreeInAChildAndWhatItGuardsIsWhole) {
  ForkMutex mutex;
  int first = 0, second = 0;
  std::atomic<bool> is_held{false}, is_forked{false};
  std::thread other([&] {
    {
      const std::lock_guard<ForkMutex> lock(mutex);
      first = 7;
      is_held = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      second = 7;
    }
    // ThreadSanitizer would miss its join in the child.
    while (!is_forked) std::this_thread::yield();
  });
  while (!is_held) std::this_thread::yield();
  const int child = in_forked_child([&] {
    const std::lock_guard<ForkMutex> lock(mutex);
    return first == 7 && second == 7 ? 0 : 1;
  });
  is_forked = true;
  other.join();
  EXPECT_EQ(child, 0);
}

TEST(OpeningMutex, IsFreeInAChildWhichDoesNotWaitForIt) {
  OpeningMutex mutex;
  std::atomic<bool> is_held{false}, is_forked{false};
  std::thread other([&] {
    const std::lock_guard<OpeningMutex> lock(mutex);
    is_held = true;
    while (!is_forked) std::this_thread::yield();
  });
  while (!is_held) std::this_thread::yield();
  const int child = in_forked_child([&] {
    const std::lock_guard<OpeningMutex> lock(mutex);
    return 0;
  });
  is_forked = true;
  other.join();
  EXPECT_EQ(child, 0);
}

TEST(OpeningMutex, IsHeldOnInTheParent) {
  // Apart from the stack: ThreadSanitizer would take it for one that lay there before.
  static OpeningMutex mutex;
  std::atomic<bool> is_in{false};
  std::thread other;
  {
    const std::lock_guard<OpeningMutex> lock(mutex);
    EXPECT_EQ(in_forked_child([] { return 0; }), 0);
    other = std::thread([&] {
      const std::lock_guard<OpeningMutex> lock(mutex);
      is_in = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(is_in);
  }
  other.join();
  EXPECT_TRUE(is_in);
}

TEST(ForkMutex, MayComeAndGoWhileOthersFork) {
  std::atomic<bool> is_done{false};
  std::thread other([&] {
    while (!is_done) {
      ForkMutex mutex;
      const std::lock_guard<ForkMutex> lock(mutex);
    }
  });
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(in_forked_child([] {
                ForkMutex mutex;
                const std::lock_guard<ForkMutex> lock(mutex);
                return 0;
              }),
              0);
  }
  is_done = true;
  other.join();
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
