// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/store/embedded.h"

#include <zstd.h>

#include "aiter/error.h"
#include "aiter/store/sha256.h"

namespace aiter_attn {

EmbeddedProvider::EmbeddedProvider(const LaunchTable& table) {
  for (uint32_t i = 0; i < table.instance_count; ++i) {
    const Instance& instance = table.instances[i];
    for (uint32_t j = 0; j < instance.code_object_count; ++j) {
      const CodeObject& object = instance.code_objects[j];
      objects_.emplace(object.key, &object);
    }
  }
}

bool EmbeddedProvider::get(std::string_view key, Bytes* bytes) {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return false;
  const CodeObject& object = *found->second;

  Bytes unpacked(object.size);
  const size_t size =
      ZSTD_decompress(unpacked.data(), unpacked.size(), object.packed, object.packed_size);
  if (ZSTD_isError(size)) {
    fail(ATTN_ERROR_CORRUPT, "embedded code object ", key,
         " cannot be unpacked: ", ZSTD_getErrorName(size),
         "; the library file is damaged: ", "install it again");
  }
  const std::string digest = sha256_hex(unpacked.data(), size);
  if (size != object.size || digest != object.sha256) {
    fail(ATTN_ERROR_CORRUPT, "embedded code object ", key, " unpacks to ", size,
         " bytes with sha256 ", digest, " instead of ", object.size, " bytes with ", object.sha256,
         "; the library file is damaged: install it again");
  }
  *bytes = std::move(unpacked);
  return true;
}

}  // namespace aiter_attn
