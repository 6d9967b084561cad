// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Loaded kernels: code objects become a device's modules, once per process.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>

#include "aiter/runtime/driver/driver.h"
#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

// Loads at the first use and keeps for the life of the process. Threads that want the same object
// on the same device wait for one of them to load it; others are not held up. A load that failed is
// tried again by the next call.
class Loader {
 public:
  explicit Loader(const Store& store) : store_(store) {}
  // The kernel `symbol` of the code object, on a device of the driver's, which must be current.
  Function function(Driver& driver, int device, const CodeObjectRef& ref, const char* symbol);
  const Store& store() const { return store_; }

 private:
  struct Loaded {
    std::mutex mutex;
    Bytes image;  // the runtime may read it as long as the module lives
    Module module = nullptr;
    std::map<std::string, Function, std::less<>> functions;
  };

  using Place = std::tuple<const Driver*, int, Digest>;

  Loaded& loaded(const Place& place);

  // Of the kernels that are asked for, where AITER_ATTN_RECORD says so.
  class Recorder {
   public:
    void add(Driver& driver, int device, const CodeObjectRef& ref);

   private:
    std::atomic<bool> told_{false};
  };

  const Store& store_;
  Recorder recorder_;
  // No ForkMutex: a child of a process that loads kernels gets no driver (driver.h).
  std::mutex mutex_;
  std::map<Place, std::unique_ptr<Loaded>> loaded_;
};

}  // namespace AITER_ATTN_NAMESPACE::runtime
