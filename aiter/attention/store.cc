// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/store.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "aiter/runtime/once.h"
#include "aiter/runtime/store/pack.h"
#include "kernels/code_object/embedded_pack.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

// Both sides of the format, which know nothing of each other.
static_assert(sizeof(runtime::PackEntry) == sizeof(kernels::EmbeddedPackEntry));

std::unique_ptr<runtime::PackProvider> embedded() {
  const kernels::EmbeddedPack pack = kernels::embedded_pack();
  return std::make_unique<runtime::PackProvider>("the library", pack.data, pack.size);
}

}  // namespace

runtime::Digest digest(const uint8_t (&bytes)[32]) {
  runtime::Digest digest;
  std::copy(std::begin(bytes), std::end(bytes), digest.begin());
  return digest;
}

runtime::CodeObjectRef code_object_ref(const kernels::CodeObjectRow& object) {
  runtime::CodeObjectRef ref = {digest(object.key), digest(object.sha256)};
  if (*ref.sha256 == runtime::Digest{}) ref.sha256.reset();  // no bytes were built
  return ref;
}

const runtime::Store& library_store() {
  static runtime::Once<const runtime::Store> store;
  return store.get([] {
    std::vector<std::unique_ptr<runtime::Provider>> providers;
    providers.push_back(embedded());
    return std::make_unique<const runtime::Store>(std::move(providers));
  });
}

uint64_t embedded_size(const runtime::Digest& key) { return embedded()->size_of(key); }

}  // namespace AITER_ATTN_NAMESPACE::attention
