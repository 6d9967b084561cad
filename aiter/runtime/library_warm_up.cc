// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

#include "aiter/runtime/library_store.h"
#include "aiter/runtime/parallel.h"
#include "aiter/runtime/warm_up.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

constexpr unsigned kMostThreads = 16;
constexpr double kBytesOfACompile = 2e9;

unsigned threads() {
  const double by_memory = host_memory() / kBytesOfACompile;
  return static_cast<unsigned>(std::clamp<double>(
      std::min<double>(by_memory, std::thread::hardware_concurrency()), 1, kMostThreads));
}

struct OfProcess {
  const pid_t process = ::getpid();
  WarmUp warm_up{library_store(), threads()};
};

}  // namespace

WarmUp& library_warm_up() {
  static std::atomic<OfProcess*> current{nullptr};
  OfProcess* known = current.load(std::memory_order_acquire);
  if (known && known->process == ::getpid()) return known->warm_up;
  auto made = std::make_unique<OfProcess>();
  // Its threads outlive a dlclose().
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&library_warm_up), &info) && info.dli_fname) {
    ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  }
  const bool first = current.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel);
  return first ? made.release()->warm_up : known->warm_up;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
