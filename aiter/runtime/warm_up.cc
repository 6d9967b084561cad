// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/warm_up.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "aiter/runtime/error.h"
#include "aiter/runtime/interrupt.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPollInterval(20);

// Whether the store has it already.
bool is_there(const Store& store, const CodeObjectRef& ref) {
  const std::vector<Store::Told> told = store.look(ref);
  const auto first =
      std::find_if(told.begin(), told.end(), [](const auto& each) { return each.answer.has; });
  return first != told.end() && first->answer.is_there();
}

// While it lives, threads that this one starts get no signal: handlers run in the caller's threads.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    // Linux's is of the calling thread; pthread_sigmask needs a newer glibc than the wheel.
    sigprocmask(SIG_SETMASK, &all, &before_);
  }
  ~WithoutSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

struct WarmUp::Work {
  explicit Work(const Store& from) : store(from) {}

  // One that was added: to be made, or done, or not to be had for this reason.
  struct State {
    bool is_pending = true;
    std::exception_ptr error;
  };

  // A thread's: until nothing is left.
  void run() {
    std::unique_lock<std::mutex> lock(mutex);
    while (!queue.empty()) {
      const CodeObjectRef ref = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      std::exception_ptr error;
      try {
        if (!is_there(store, ref)) store.serve(ref);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      states[ref.key] = {false, error};
      changed.notify_all();
    }
    --running;
    changed.notify_all();
  }

  const Store& store;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<CodeObjectRef> queue;
  std::map<Digest, State> states;
  unsigned running = 0;
};

WarmUp::WarmUp(const Store& store, unsigned threads)
    : work_(std::make_shared<Work>(store)), threads_(threads) {}

WarmUp::~WarmUp() {
  std::unique_lock<std::mutex> lock(work_->mutex);
  work_->queue.clear();
  work_->changed.wait(lock, [this] { return work_->running == 0; });
}

void WarmUp::add(const std::vector<CodeObjectRef>& refs) {
  const WithoutSignals without_signals;
  const std::lock_guard<std::mutex> lock(work_->mutex);
  for (const CodeObjectRef& ref : refs) {
    const auto [known, is_new] = work_->states.try_emplace(ref.key);
    if (!is_new && !known->second.error) continue;
    known->second = {};
    work_->queue.push_back(ref);
  }
  for (auto more = std::min<size_t>(threads_ - work_->running, work_->queue.size()); more; --more) {
    try {
      std::thread([work = work_] { work->run(); }).detach();
    } catch (const std::system_error& error) {
      if (work_->running > 0) break;  // which do all of it
      for (const CodeObjectRef& ref : work_->queue) work_->states.erase(ref.key);
      work_->queue.clear();
      fail(Status::kOutOfMemory, "cannot start a thread: ", error.what());
    }
    ++work_->running;
  }
}

uint32_t WarmUp::wait(const std::vector<Digest>& keys, std::chrono::milliseconds limit) {
  const Clock::time_point since = Clock::now();
  std::unique_lock<std::mutex> lock(work_->mutex);
  while (true) {
    uint32_t pending = 0;
    for (const Digest& key : keys) {
      const auto known = work_->states.find(key);
      pending += known != work_->states.end() && known->second.is_pending;
    }
    const bool is_over = limit.count() >= 0 && Clock::now() - since >= limit;
    if (pending > 0 && !is_over) {
      work_->changed.wait_for(lock, kPollInterval);
      lock.unlock();
      check_interrupt();
      lock.lock();
      continue;
    }
    for (const Digest& key : keys) {
      const auto known = work_->states.find(key);
      if (known != work_->states.end() && known->second.error) {
        std::rethrow_exception(known->second.error);
      }
    }
    return pending;
  }
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
