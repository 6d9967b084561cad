// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The code objects that a library holds: packs, read in place.
//
// A pack is little-endian: a header, `count` entries sorted by key, and the zstd frames that they
// name: that of the dictionary, then one per code object, each with the size of its contents. The
// frames of code objects are compressed with the dictionary and name it by its zstd ID, so that any
// one can be unpacked without the others. No two entries have the same key. The bytes depend on the
// code objects alone.
#pragma once

#include <cstdint>
#include <vector>

namespace AITER_ATTN_NAMESPACE::kernels {

struct EmbeddedPackHeader {
  char magic[8];  // "ATTNPCK" and the version of the format, '2'
  uint64_t count;
  uint64_t dictionary_offset;       // of its frame, from the pack's start
  uint64_t dictionary_packed_size;  // of its frame
  uint64_t dictionary_size;         // 0: this pack has none, its frames need none
};

struct EmbeddedPackEntry {
  uint8_t key[32];
  uint8_t sha256[32];    // of the code object
  uint64_t offset;       // of the frame, from the pack's start
  uint64_t packed_size;  // of the frame
  uint64_t size;         // of the code object
};

struct EmbeddedPack {
  const unsigned char* data;  // 16-byte aligned
  uint64_t size;
};

// Those of this build: //kernels:embedded_packs defines it, tests define their own.
std::vector<EmbeddedPack> embedded_packs();

}  // namespace AITER_ATTN_NAMESPACE::kernels
