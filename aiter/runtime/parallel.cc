// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/parallel.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "aiter/runtime/error.h"
#include "aiter/runtime/interrupt.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

constexpr std::chrono::milliseconds kPollInterval{20};

// Ends the work of a thread; why is the team's matter.
struct Stopped {};

}  // namespace

double host_memory() {
  static std::atomic<double> known{0};  // it does not change
  if (known == 0) known = 1.0 * sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  return known;
}

Interrupt& thread_interrupt() {
  thread_local Interrupt interrupt;
  return interrupt;
}

void check_interrupt() {
  const Interrupt& interrupt = thread_interrupt();
  if (!interrupt.poll || interrupt.poll(interrupt.context) == 0) return;
  fail(Status::kInterrupted, "interrupted by what attn_set_interrupt set");
}

class Team {
 public:
  Team(int64_t count, const std::function<void(int64_t, Pulse&)>& work)
      : count_(count), work_(work), interrupt_(thread_interrupt()) {}

  // Does all of the work, on the calling thread and up to threads - 1 others.
  void run(int64_t threads) {
    start(threads - 1);
    take_part(/*is_caller=*/true);
    wait();
    for (std::thread& thread : threads_) thread.join();
    if (error_) std::rethrow_exception(error_);
  }

  bool is_stopped() const { return stopped_.load(std::memory_order_relaxed); }

  // On the caller's thread: asks the interrupt, where it was not asked just now.
  void poll() noexcept {
    if (!interrupt_.poll || is_stopped() || Clock::now() - polled_ < kPollInterval) return;
    try {
      if (interrupt_.poll(interrupt_.context) != 0) {
        fail(Status::kInterrupted, "interrupted by what attn_set_interrupt set: the outputs are ",
             "undefined");
      }
    } catch (...) {
      stop(std::current_exception());
    }
    polled_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Where a thread cannot start, those that run, and this one, do all of the work.
  void start(int64_t wanted) noexcept {
    try {
      threads_.reserve(static_cast<size_t>(wanted));
      for (int64_t i = 0; i < wanted; ++i) {
        threads_.emplace_back([this] {
          take_part(/*is_caller=*/false);
          const std::lock_guard<std::mutex> lock(mutex_);
          ++ended_;
          one_ended_.notify_one();
        });
      }
    } catch (...) {
    }
  }

  void take_part(bool is_caller) noexcept {
    try {
      Pulse pulse(*this, is_caller);
      for (int64_t i; !is_stopped() && (i = next_++) < count_;) work_(i, pulse);
    } catch (const Stopped&) {
    } catch (...) {
      stop(std::current_exception());
    }
  }

  // For the other threads, which may be at it for as long as one piece takes.
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (ended_ < threads_.size()) {
      if (!interrupt_.poll || is_stopped()) {
        one_ended_.wait(lock);
        continue;
      }
      one_ended_.wait_for(lock, kPollInterval);
      lock.unlock();
      poll();
      lock.lock();
    }
  }

  void stop(std::exception_ptr error) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!error_) error_ = std::move(error);
    stopped_ = true;
  }

  const int64_t count_;
  const std::function<void(int64_t, Pulse&)>& work_;
  const Interrupt interrupt_;
  Clock::time_point polled_ = Clock::now();  // the caller's thread's
  std::atomic<int64_t> next_{0};
  std::atomic<bool> stopped_{false};

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable one_ended_;
  size_t ended_ = 0;
  std::exception_ptr error_;
};

void Pulse::look() {
  left_ = kSteps;
  if (is_caller_) team_.poll();
  if (team_.is_stopped()) throw Stopped{};
}

void parallel_for(const Pieces& pieces, const std::function<void(int64_t, Pulse&)>& work) {
  constexpr double kStepsWorthAThread = 1e6;
  if (pieces.count <= 0) return;
  double threads = std::min<double>(pieces.count, 1 + pieces.steps / kStepsWorthAThread);
  if (threads >= 2) {
    threads = std::min({threads, 1.0 * std::thread::hardware_concurrency(),
                        host_memory() / std::max(pieces.scratch, 1.0)});
  }
  Team(pieces.count, work).run(std::max<int64_t>(1, static_cast<int64_t>(threads)));
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
