// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A file KEY.object of a cache (cache.h), read and verified.
#pragma once

#include <optional>
#include <string>

#include "aiter/runtime/store/digest.h"
#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

struct CachedFileHeader {
  char magic[8];
  Digest key;
  Digest sha256;
  uint64_t size;
};
static_assert(sizeof(CachedFileHeader) == 80);

CachedFileHeader cached_file_header(const Digest& key, const Bytes& bytes);

// The object in all the bytes of such a file, which are proven otherwise: its own head says the
// rest. Nothing: it has none of this key's; refused: the reason, beginning with a verb.
std::optional<Bytes> object_of_file(const Bytes& file, const Digest& key, std::string& refused);

enum class CacheOwner {
  kUser,     // files of this user's and of root's alone are believed; the time of use is kept
  kAnybody,  // anybody's are whose digest the ref has, others as above; nothing is written
};

// Nothing: there is none that is believed. refused: the reason, where there is a file.
std::optional<Bytes> read_cached_file(const std::string& path, const CodeObjectRef& ref,
                                      CacheOwner owner, std::string& refused);

}  // namespace AITER_ATTN_NAMESPACE::runtime
