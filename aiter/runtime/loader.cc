// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/loader.h"

#include <cstdio>

#include "aiter/runtime/error.h"
#include "aiter/runtime/store/record.h"

namespace AITER_ATTN_NAMESPACE::runtime {

void Loader::Recorder::add(Driver& driver, int device, const CodeObjectRef& ref) {
  if (!ref.name) return;
  const std::string file = record_file();
  if (file.empty()) return;
  const std::string error = record(file, concat(driver.arch(device), " ", ref.name()));
  if (error.empty() || told_.exchange(true)) return;
  std::fprintf(stderr, "aiter-attn: kernels are not recorded: %s\n", error.c_str());
}

Loader::Loaded& Loader::loaded(const Place& place) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<Loaded>& entry = loaded_[place];
  if (!entry) entry = std::make_unique<Loaded>();
  return *entry;
}

Function Loader::function(Driver& driver, int device, const CodeObjectRef& ref,
                          const char* symbol) {
  Loaded& entry = loaded({&driver, device, ref.key});
  const std::lock_guard<std::mutex> lock(entry.mutex);
  if (!entry.module) {
    recorder_.add(driver, device, ref);
    Bytes image = store_.serve(ref);
    try {
      entry.module = driver.load(image.data());
    } catch (const Error& error) {
      fail(error.status(), error.what(), " (code object ", hex(ref.key), " with ", symbol,
           ", device ", device, ")");
    }
    entry.image = std::move(image);
  }
  const auto known = entry.functions.find(std::string_view(symbol));
  if (known != entry.functions.end()) return known->second;
  const Function function = driver.function(entry.module, symbol);
  entry.functions.emplace(symbol, function);
  return function;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
