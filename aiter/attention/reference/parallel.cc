// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/reference/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace AITER_ATTN_NAMESPACE::attention {

void parallel_for(int64_t count, double cost, const std::function<void(int64_t)>& work) {
  constexpr double kStepsWorthAThread = 1e6;
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr first_error;
  const auto run = [&] {
    try {
      for (int64_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard<std::mutex> lock(mutex);
      if (!first_error) first_error = std::current_exception();
    }
  };

  const int64_t wanted =
      std::min<int64_t>({count, int64_t{std::thread::hardware_concurrency()},
                         static_cast<int64_t>(std::min(cost / kStepsWorthAThread, 1e6)) + 1});
  std::vector<std::thread> threads;
  threads.reserve(std::max<int64_t>(wanted, 0));
  try {
    for (int64_t i = 1; i < wanted; ++i) threads.emplace_back(run);
  } catch (const std::system_error&) {
    // No more threads to be had: those that run, and this one, do all of it.
  }
  run();
  for (std::thread& thread : threads) thread.join();
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace AITER_ATTN_NAMESPACE::attention
