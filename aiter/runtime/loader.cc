// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/loader.h"

#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::runtime {

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
