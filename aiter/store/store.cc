// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/store/store.h"

#include "aiter/error.h"
#include "aiter/store/embedded.h"

namespace aiter_attn {

Store::Store(std::vector<std::unique_ptr<Provider>> providers) : providers_(std::move(providers)) {}

Bytes Store::get(std::string_view key) const {
  std::string asked;
  for (const auto& provider : providers_) {
    Bytes bytes;
    if (provider->get(key, &bytes)) return bytes;
    asked += (asked.empty() ? "" : ", ") + provider->name();
  }
  fail(ATTN_ERROR_UNSUPPORTED, "no code object with key '", key, "' (asked: ", asked,
       "); attn_kernel_info lists the keys of this build");
}

const Store& library_store() {
  // Never destroyed: other threads may still launch while the process exits.
  static const Store* const store = [] {
    std::vector<std::unique_ptr<Provider>> providers;
    providers.push_back(std::make_unique<EmbeddedProvider>(launch_table()));
    return new Store(std::move(providers));
  }();
  return *store;
}

}  // namespace aiter_attn
