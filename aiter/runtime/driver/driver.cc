// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/driver/driver.h"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <new>

#include "aiter/runtime/driver/hip.h"
#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::runtime {

namespace {

constexpr int32_t kRocm = 10;  // kDLROCM

enum class State {
  kClosed,
  kOpening,
  kOpen,
  kInherited,  // a parent process had opened it, or was about to
};

// Made before anything runs, never destroyed: the runtime may be torn down before this library is.
std::mutex mutex;  // while it is opened
std::atomic<State> state{State::kClosed};
std::atomic<Driver*> hip{nullptr};

// A GPU runtime's threads, and its hold on the devices, stay with the parent.
void in_forked_child() {
  new (&mutex) std::mutex;  // who held it is in the parent
  if (state != State::kClosed) state = State::kInherited;
}

// When the library is loaded: later, another thread may fork meanwhile.
[[maybe_unused]] const int fork_watch = pthread_atfork(nullptr, nullptr, in_forked_child);

}  // namespace

DeviceScope::DeviceScope(Driver& driver, int device)
    : driver_(driver), previous_(driver.current_device()), changed_(previous_ != device) {
  if (changed_) driver_.make_current(device);
}

DeviceScope::~DeviceScope() {
  if (!changed_) return;
  try {
    driver_.make_current(previous_);
  } catch (const Error&) {
    // The runtime accepted this device when the scope began. If it is broken by now, the caller's
    // own next call says so; a destructor cannot.
  }
}

Driver& driver_for(int32_t device_type) {
  if (device_type != kRocm) {
    fail(Status::kDriver, "device type ", device_type, " has no driver; there is one for ROCm (",
         kRocm, ")");
  }
  if (state == State::kInherited) {
    fail(Status::kDriver,
         "this process was forked from one that had opened the HIP runtime, which ",
         "does not survive that: start processes that use a GPU by spawn, or before the first use ",
         "of the GPU");
  }
  if (Driver* open = hip.load(std::memory_order_acquire)) return *open;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!hip) {
    state = State::kOpening;
    try {
      hip = open_hip().release();
      state = State::kOpen;
    } catch (...) {
      state = State::kClosed;
      throw;
    }
  }
  return *hip;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
