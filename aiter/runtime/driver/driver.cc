// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/driver/driver.h"

#include <pthread.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <new>

#include "aiter/runtime/driver/cuda.h"
#include "aiter/runtime/driver/hip.h"
#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::runtime {

namespace {

enum class State {
  kClosed,
  kOpening,
  kOpen,
  kInherited,  // a parent process had opened it, or was about to
};

// A runtime of this process.
struct Slot {
  int32_t device_type;  // DLDeviceType
  const char* name;
  std::unique_ptr<Driver> (*open)();
  std::mutex mutex = {};  // while it is opened
  std::atomic<State> state = State::kClosed;
  std::atomic<Driver*> driver = nullptr;
};

// Made before anything runs, never destroyed: a runtime may be torn down before this library is.
Slot slots[] = {
    {2, "CUDA", open_cuda},  // kDLCUDA
    {10, "HIP", open_hip},   // kDLROCM
};

// A GPU runtime's threads, and its hold on the devices, stay with the parent.
void in_forked_child() {
  for (Slot& slot : slots) {
    new (&slot.mutex) std::mutex;  // the thread that held it is in the parent
    if (slot.state != State::kClosed) slot.state = State::kInherited;
  }
}

// When the library is loaded: later, another thread may fork meanwhile.
[[maybe_unused]] const int fork_watch = pthread_atfork(nullptr, nullptr, in_forked_child);

Slot& slot_of(int32_t device_type) {
  for (Slot& slot : slots) {
    if (slot.device_type == device_type) return slot;
  }
  fail(Status::kDriver, "device type ", device_type,
       " has no driver; there is one for CUDA (2) and one for ROCm (10)");
}

}  // namespace

DeviceScope::DeviceScope(Driver& driver, int device)
    : driver_(driver), before_(driver.enter(device)) {}

DeviceScope::~DeviceScope() {
  try {
    driver_.leave(before_);
  } catch (const Error&) {
    // The runtime accepted this device when the scope began. If it is broken by now, the caller's
    // own next call says so; a destructor cannot.
  }
}

Driver& driver_for(int32_t device_type) {
  Slot& slot = slot_of(device_type);
  if (slot.state == State::kInherited) {
    fail(Status::kDriver, "this process was forked from one that had opened the ", slot.name,
         " runtime, which does not survive that: start processes that use a GPU by spawn, or ",
         "before the first use of the GPU");
  }
  if (Driver* open = slot.driver.load(std::memory_order_acquire)) return *open;
  const std::lock_guard<std::mutex> lock(slot.mutex);
  if (!slot.driver) {
    slot.state = State::kOpening;
    try {
      slot.driver = slot.open().release();
      slot.state = State::kOpen;
    } catch (...) {
      slot.state = State::kClosed;
      throw;
    }
  }
  return *slot.driver;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
