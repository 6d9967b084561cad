// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/driver/driver.h"

#include <pthread.h>

#include <atomic>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>

#include "aiter/runtime/driver/drivers.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/fork_mutex.h"

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
  OpeningMutex mutex;
  std::atomic<State> state = State::kClosed;
  std::atomic<Driver*> driver = nullptr;
};

// Of kDrivers. Made when the library is loaded, never destroyed: a runtime may be torn down before
// this library is.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization)
Slot* const slots = new Slot[std::size(kDrivers)];

// A GPU runtime's threads, and its hold on the devices, stay with the parent.
void in_forked_child() {
  for (size_t i = 0; i < std::size(kDrivers); ++i) {
    if (slots[i].state != State::kClosed) slots[i].state = State::kInherited;
  }
}

// When the library is loaded: later, another thread may fork meanwhile.
[[maybe_unused]] const int fork_watch = pthread_atfork(nullptr, nullptr, in_forked_child);

const KnownDriver& known_driver(int32_t device_type) {
  std::string known;
  for (const KnownDriver& each : kDrivers) {
    if (each.device_type == device_type) return each;
    known += concat(known.empty() ? "" : ", ", each.name, " (", each.device_type, ")");
  }
  fail(Status::kDriver, "device type ", device_type, " has no driver; there are: ", known);
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
  const KnownDriver& known = known_driver(device_type);
  Slot& slot = slots[&known - kDrivers];
  if (slot.state == State::kInherited) {
    fail(Status::kDriver, "this process was forked from one that had opened the ", known.name,
         " runtime, which does not survive that: start processes that use a GPU by spawn, or ",
         "before the first use of the GPU");
  }
  if (Driver* open = slot.driver.load(std::memory_order_acquire)) return *open;
  const std::lock_guard<OpeningMutex> lock(slot.mutex);
  if (!slot.driver) {
    slot.state = State::kOpening;
    try {
      slot.driver = known.open().release();
      slot.state = State::kOpen;
    } catch (...) {
      slot.state = State::kClosed;
      throw;
    }
  }
  return *slot.driver;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
