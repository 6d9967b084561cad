// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/driver/driver.h"

#include <memory>
#include <mutex>

#include "aiter/runtime/driver/hip.h"
#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::runtime {

namespace {
constexpr int32_t kRocm = 10;  // kDLROCM
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
  // Never destroyed: the runtime may be torn down before this library's statics are.
  static std::mutex* const mutex = new std::mutex;
  static std::unique_ptr<Driver>* const hip = new std::unique_ptr<Driver>;
  const std::lock_guard<std::mutex> lock(*mutex);
  if (!*hip) *hip = open_hip();
  return **hip;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
