// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Frames of a kpack, read as its readers do: by the sizes in front of them, without a dictionary.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/code_object/pack_writer.h"
#include "zstd.h"

namespace AITER_ATTN_NAMESPACE::kernels {
namespace {

using Bytes = std::vector<unsigned char>;

uint32_t number_at(const Bytes& bytes, size_t at) {
  uint32_t number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

TEST(WriteFrames, HaveTheObjectsInOrder) {
  std::vector<PackedObject> objects;
  for (const size_t size : {70000, 0, 1, 5000, 5000}) {
    Bytes bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(i * i / 7 + size);
    // Descending keys: a pack would sort them.
    objects.push_back({{static_cast<uint8_t>(9 - objects.size())}, {}, bytes});
  }
  const Bytes made = write_frames(objects);
  EXPECT_EQ(write_frames(objects), made);
  ASSERT_GE(made.size(), sizeof(uint32_t));
  EXPECT_EQ(number_at(made, 0), objects.size());
  size_t at = sizeof(uint32_t);
  for (const PackedObject& object : objects) {
    ASSERT_LE(at + sizeof(uint32_t), made.size());
    const size_t size = number_at(made, at);
    at += sizeof(uint32_t);
    ASSERT_LE(at + size, made.size());
    Bytes unpacked(object.bytes.size());
    EXPECT_EQ(ZSTD_decompress(unpacked.data(), unpacked.size(), made.data() + at, size),
              object.bytes.size());
    EXPECT_EQ(unpacked, object.bytes);
    at += size;
  }
  EXPECT_EQ(at, made.size());
}

// As many objects as several threads take.
TEST(WriteFrames, AreThoseOfEachObjectAlone) {
  std::vector<PackedObject> objects;
  for (size_t number = 0; number < 400; ++number) {
    Bytes bytes(number % 97 * 30);
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<unsigned char>(i * i / 7 + number * i);
    }
    objects.push_back({{}, {}, bytes});
  }
  const Bytes made = write_frames(objects);
  size_t at = sizeof(uint32_t);
  for (const PackedObject& object : objects) {
    const Bytes alone = write_frames({object});
    const size_t size = alone.size() - sizeof(uint32_t);
    ASSERT_LE(at + size, made.size());
    EXPECT_TRUE(std::equal(alone.begin() + sizeof(uint32_t), alone.end(), made.data() + at));
    at += size;
  }
  EXPECT_EQ(at, made.size());
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::kernels
