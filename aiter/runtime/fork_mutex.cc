// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/fork_mutex.h"

#include <pthread.h>

#include <new>
#include <set>

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

struct All {
  std::mutex mutex;
  std::set<ForkMutex*> mutexes;
  std::set<OpeningMutex*> opening;
};

// Never destroyed: other threads may fork while the process exits.
All& all() {
  static auto* const all = new All;
  return *all;
}

void before_fork() {
  all().mutex.lock();
  for (ForkMutex* each : all().mutexes) each->lock();
}

void after_fork() {
  for (ForkMutex* each : all().mutexes) each->unlock();
  all().mutex.unlock();
}

void after_fork_in_child() {
  for (OpeningMutex* each : all().opening) each->free_in_child();
  after_fork();
}

int watch_forks() noexcept {
  all();
  return pthread_atfork(before_fork, after_fork, after_fork_in_child);
}
// When the library is loaded: later, another thread may fork meanwhile. Where memory is too short
// for that, it is for the library.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization)
[[maybe_unused]] const int fork_watch = watch_forks();

}  // namespace

ForkMutex::ForkMutex() {
  const std::lock_guard<std::mutex> lock(all().mutex);
  all().mutexes.insert(this);
}

ForkMutex::~ForkMutex() {
  const std::lock_guard<std::mutex> lock(all().mutex);
  all().mutexes.erase(this);
}

OpeningMutex::OpeningMutex() {
  const std::lock_guard<std::mutex> lock(all().mutex);
  all().opening.insert(this);
}

OpeningMutex::~OpeningMutex() {
  const std::lock_guard<std::mutex> lock(all().mutex);
  all().opening.erase(this);
}

// The thread that held it is in the parent.
void OpeningMutex::free_in_child() { new (&mutex_) std::mutex; }

}  // namespace AITER_ATTN_NAMESPACE::runtime
