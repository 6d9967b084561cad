// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include "aiter/runtime/error.h"
#include "aiter/runtime/interrupt.h"
#include "tests/support/runtime/failing_allocations.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using ::testing::HasSubstr;

constexpr double kManySteps = 1e12;  // worth any number of threads

// Counts polls, and asks to stop at one of them.
struct Poll {
  explicit Poll(int stop_at) : stop_at(stop_at) { thread_interrupt() = {&called, this}; }
  ~Poll() { thread_interrupt() = {}; }
  static int called(void* context) {
    Poll& self = *static_cast<Poll*>(context);
    self.on_this_thread &= std::this_thread::get_id() == self.thread;
    return ++self.polls == self.stop_at;
  }
  const int stop_at;
  int polls = 0;
  bool on_this_thread = true;
  const std::thread::id thread = std::this_thread::get_id();
};

// Works until it is stopped, or for a minute.
void work_for_long(Pulse& pulse) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (std::chrono::steady_clock::now() < end) pulse(Pulse::kSteps);
}

TEST(ParallelTest, EveryPieceIsDoneOnce) {
  for (const int64_t count : {0, 1, 2, 1000}) {
    for (const double steps : {0.0, kManySteps}) {
      std::vector<std::atomic<int>> done(count);
      parallel_for({count, steps, 1}, [&](int64_t i, Pulse& pulse) {
        ++done[i];
        pulse(Pulse::kSteps);
      });
      for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1);
    }
  }
}

// Whichever allocation fails while threads are started: all is done by those that run.
TEST(ParallelTest, ThreadsThatCannotBeStartedAreDoneWithout) {
  for (int64_t failing = 1; failing < 40; ++failing) {
    std::atomic<int> done{0};
    {
      const testing::FailingAllocation allocation(failing);
      parallel_for({64, kManySteps, 1}, [&](int64_t, Pulse&) { ++done; });
    }
    EXPECT_EQ(done, 64);
  }
}

TEST(ParallelTest, WhatIsThrownArrivesAndEndsTheOthers) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(parallel_for({1000, kManySteps, 1},
                            [&](int64_t i, Pulse& pulse) {
                              if (i == 1) throw std::runtime_error("1");
                              work_for_long(pulse);
                            }),
               std::runtime_error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(50));
}

TEST(ParallelTest, TheCallersInterruptStopsAllThreads) {
  Poll poll(/*stop_at=*/3);
  try {
    parallel_for({1000, kManySteps, 1}, [](int64_t, Pulse& pulse) { work_for_long(pulse); });
    ADD_FAILURE() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::kInterrupted);
    EXPECT_THAT(error.what(), HasSubstr("attn_set_interrupt"));
  }
  EXPECT_EQ(poll.polls, 3);
  EXPECT_TRUE(poll.on_this_thread);
}

// The caller has nothing left to do, and another thread has, where there is one.
TEST(ParallelTest, ItIsPolledWhileOthersAreWaitedFor) {
  const bool alone = std::thread::hardware_concurrency() < 2;
  Poll poll(/*stop_at=*/3);
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> other_works{false};
  EXPECT_THROW(parallel_for({2, kManySteps, 1},
                            [&](int64_t, Pulse& pulse) {
                              if (alone || std::this_thread::get_id() != caller) {
                                other_works = true;
                                return work_for_long(pulse);
                              }
                              while (!other_works) std::this_thread::yield();
                            }),
               Error);
  EXPECT_EQ(poll.polls, 3);
}

TEST(ParallelTest, OtherThreadsHaveInterruptsOfTheirOwn) {
  Poll poll(/*stop_at=*/1);
  std::thread([] {
    parallel_for({1, 0, 1}, [](int64_t, Pulse& pulse) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      pulse(Pulse::kSteps);
    });
  }).join();
  EXPECT_EQ(poll.polls, 0);
}

TEST(ParallelTest, ThreadsAreAsManyAsMemoryHolds) {
  std::atomic<int> running{0}, most{0};
  // Two pieces do not fit at once.
  const double scratch = std::numeric_limits<double>::max();
  parallel_for({8, kManySteps, scratch}, [&](int64_t, Pulse&) {
    most = std::max<int>(most, ++running);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    --running;
  });
  EXPECT_EQ(most, 1);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
