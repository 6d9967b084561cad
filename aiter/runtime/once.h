// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A value that is made at its first use and lives as long as the process.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace AITER_ATTN_NAMESPACE::runtime {

// Threads that come at the same time may each make one; the first that is done is everyone's. So no
// thread waits for another, and a process that is forked meanwhile gets a child that can use it: a
// lock, as a static variable of a function has one, would stay locked there. Needs no constructor
// at run time, and is never destroyed: other threads may still use it while the process exits.
template <typename T>
class Once {
 public:
  constexpr Once() = default;
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;

  // make returns a std::unique_ptr<T>; an exception of it is thrown here, and the next call tries
  // again.
  template <typename Make>
  T& get(Make&& make) {
    T* known = value_.load(std::memory_order_acquire);
    if (known) return *known;
    std::unique_ptr<T> made = std::forward<Make>(make)();
    const bool first = value_.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel);
    return first ? *made.release() : *known;
  }

 private:
  std::atomic<T*> value_{nullptr};
};

}  // namespace AITER_ATTN_NAMESPACE::runtime
