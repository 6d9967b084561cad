// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A pack of more code objects than are compressed both with and without a dictionary, which decide
// for the others.
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/code_object/embedded_pack.h"
#include "kernels/code_object/pack_writer.h"
#include "zstd.h"

namespace AITER_ATTN_NAMESPACE::kernels {
namespace {

using Bytes = std::vector<unsigned char>;

constexpr size_t kBlock = 4096;

void append_random_block(std::mt19937* random, Bytes* bytes) {
  for (size_t i = 0; i < kBlock; ++i) bytes->push_back(static_cast<unsigned char>((*random)()));
}

// Siblings of 15 to 17 blocks: most of them from 40 that they share, one their own. Between 60 of
// them and 60 others, five of zeros take the room that the first are tried in: 10 MB at no cost.
std::vector<PackedObject> objects_of_a_large_pack() {
  std::mt19937 random(7);
  Bytes shared;
  for (size_t i = 0; i < 40; ++i) append_random_block(&random, &shared);
  std::vector<PackedObject> objects;
  for (uint8_t number = 0; number < 125; ++number) {
    Bytes bytes;
    if (number >= 60 && number < 65) bytes.resize(size_t{2} << 20);
    while (bytes.size() < kBlock * (14u + number % 3)) {
      const unsigned char* block = shared.data() + random() % 40 * kBlock;
      bytes.insert(bytes.end(), block, block + kBlock);
    }
    append_random_block(&random, &bytes);
    objects.push_back({{number}, {static_cast<uint8_t>(255 - number)}, bytes});
  }
  return objects;
}

template <typename T>
T at(const Bytes& pack, uint64_t offset) {
  T value;
  EXPECT_LE(offset + sizeof(value), pack.size());
  std::memcpy(&value, pack.data() + offset, sizeof(value));
  return value;
}

TEST(LargePack, HasEachObjectByADictionary) {
  const std::vector<PackedObject> objects = objects_of_a_large_pack();
  const Bytes pack = write_pack(objects);
  const auto header = at<EmbeddedPackHeader>(pack, 0);
  ASSERT_EQ(header.count, objects.size());
  // The shared blocks alone have 160 KB, each object's own 4 KB.
  EXPECT_LT(pack.size(), 1u << 20);

  Bytes dictionary(header.dictionary_size);
  ASSERT_EQ(ZSTD_decompress(dictionary.data(), dictionary.size(),
                            pack.data() + header.dictionary_offset, header.dictionary_packed_size),
            dictionary.size());
  ASSERT_FALSE(dictionary.empty());
  uint64_t end = header.dictionary_offset + header.dictionary_packed_size;
  ZSTD_DCtx* context = ZSTD_createDCtx();
  for (size_t i = 0; i < objects.size(); ++i) {
    const auto entry = at<EmbeddedPackEntry>(pack, sizeof(header) + i * sizeof(EmbeddedPackEntry));
    EXPECT_EQ(entry.key[0], objects[i].key[0]);
    EXPECT_EQ(entry.sha256[0], objects[i].sha256[0]);
    EXPECT_EQ(entry.offset, end);
    end += entry.packed_size;
    ASSERT_LE(end, pack.size());
    Bytes unpacked(entry.size);
    EXPECT_EQ(ZSTD_decompress_usingDict(context, unpacked.data(), unpacked.size(),
                                        pack.data() + entry.offset, entry.packed_size,
                                        dictionary.data(), dictionary.size()),
              objects[i].bytes.size());
    EXPECT_EQ(unpacked, objects[i].bytes);
  }
  ZSTD_freeDCtx(context);
  EXPECT_EQ(end, pack.size());
  EXPECT_EQ(write_pack({objects.rbegin(), objects.rend()}), pack);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::kernels
