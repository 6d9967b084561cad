// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Code objects that are made ahead of need, by threads in the background.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

class WarmUp {
 public:
  // The store outlives it. threads: at most, at a time.
  WarmUp(const Store& store, unsigned threads);
  // Waits for those that are being made; the others are not made any more.
  ~WarmUp();
  WarmUp(const WarmUp&) = delete;
  WarmUp& operator=(const WarmUp&) = delete;

  // Has the store make those that a launch would have made first, and returns at once. One that
  // could not be made is tried again; one that is there costs a look. Throws Status::kOutOfMemory
  // where no thread can be started.
  void add(const std::vector<CodeObjectRef>& refs);

  // Waits until none of these is still to be made, at most so long; without a limit where it is
  // negative. Returns the number of those that are. Throws the error of the first that could not be
  // made, and Status::kInterrupted where the calling thread's interrupt (interrupt.h) says so.
  uint32_t wait(const std::vector<Digest>& keys, std::chrono::milliseconds limit);

 private:
  struct Work;
  const std::shared_ptr<Work> work_;
  const unsigned threads_;
};

// The library's own, of this process: a child that is forked has another. It is never destroyed.
// Throws what library_store() throws.
WarmUp& library_warm_up();

}  // namespace AITER_ATTN_NAMESPACE::runtime
