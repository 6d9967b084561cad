// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/loader.h"

#include "aiter/error.h"

namespace aiter_attn {

std::shared_ptr<Loader::Loaded> Loader::entry(int device, const char* key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<Loaded>& entry = entries_[{device, key}];
  if (!entry) entry = std::make_shared<Loaded>();
  return entry;
}

Function Loader::function(int device, const CodeObject& object, const char* symbol) {
  const std::shared_ptr<Loaded> loaded = entry(device, object.key);
  const std::lock_guard<std::mutex> lock(loaded->mutex);
  if (!loaded->module) {
    Bytes image = store_.get(object.key);
    try {
      loaded->module = driver_.load(image.data());
    } catch (const Error& error) {
      fail(error.status(), error.what(), " (code object ", object.key, " for ", object.arch,
           ", device ", device, ")");
    }
    loaded->image = std::move(image);
  }
  Function& function = loaded->functions[symbol];
  if (!function) function = driver_.function(loaded->module, symbol);
  return function;
}

}  // namespace aiter_attn
