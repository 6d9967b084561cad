// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/library_loader.h"

#include <memory>

#include "aiter/runtime/library_store.h"
#include "aiter/runtime/once.h"

namespace AITER_ATTN_NAMESPACE::runtime {

Loader& library_loader() {
  static Once<Loader> loader;
  return loader.get([] { return std::make_unique<Loader>(library_store()); });
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
