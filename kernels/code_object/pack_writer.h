// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Makes packs of code objects: embedded_pack.h has their format.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace AITER_ATTN_NAMESPACE::kernels {

struct PackedObject {
  std::array<uint8_t, 32> key;
  std::array<uint8_t, 32> sha256;  // of the bytes
  std::vector<unsigned char> bytes;
};

// The pack of code objects with different keys, in any order. It has a dictionary where that makes
// it smaller (of a large pack: that part of it which the dictionary is trained on). The bytes
// depend on nothing but the arguments. Throws std::runtime_error where two keys are the same, or
// zstd fails.
std::vector<unsigned char> write_pack(std::vector<PackedObject> objects);

// Code objects for readers of ROCm's kpack, in the given order: their number, then the size of each
// one's frame and the frame, which needs no dictionary. Numbers are 32 bits, little-endian. Throws
// std::runtime_error where zstd fails.
std::vector<unsigned char> write_frames(const std::vector<PackedObject>& objects);

}  // namespace AITER_ATTN_NAMESPACE::kernels
