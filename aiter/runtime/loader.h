// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Loaded kernels: code objects become a device's modules, once per process.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "aiter/runtime/driver/driver.h"
#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

// Loads at the first use and keeps for the life of the process. Threads that want the same object
// on the same device wait for one of them to load it; others are not held up. A load that failed is
// tried again by the next call.
class Loader {
 public:
  Loader(Driver& driver, const Store& store) : driver_(driver), store_(store) {}
  // The kernel `symbol` of the code object, on device, which must be current.
  Function function(int device, const CodeObjectRef& ref, const char* symbol);

 private:
  struct Loaded {
    std::mutex mutex;
    Bytes image;  // the runtime may read it as long as the module lives
    Module module = nullptr;
    std::map<std::string, Function, std::less<>> functions;
  };

  Loaded& loaded(int device, const Digest& key);

  Driver& driver_;
  const Store& store_;
  std::mutex mutex_;
  std::map<std::pair<int, Digest>, std::unique_ptr<Loaded>> loaded_;
};

}  // namespace AITER_ATTN_NAMESPACE::runtime
