// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The code objects that a library holds: one pack, read in place.
//
// A pack is little-endian: a header, `count` entries sorted by key, and the frames that they name.
// A frame is a code object compressed by zstd, with its size in the frame. No two entries have the
// same key. The bytes depend on the code objects alone.
#pragma once

#include <cstdint>

namespace AITER_ATTN_NAMESPACE::kernels {

struct EmbeddedPackHeader {
  char magic[8];  // "ATTNPCK1"
  uint64_t count;
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

// That of this build: //kernels:embedded_pack defines it, tests define their own.
EmbeddedPack embedded_pack();

}  // namespace AITER_ATTN_NAMESPACE::kernels
