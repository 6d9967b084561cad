// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The size of the pack of `core`: index, dictionary and frames.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/code_object/embedded_pack.h"

namespace AITER_ATTN_NAMESPACE::kernels {

EmbeddedPack core_pack();

namespace {

TEST(PackOfCore, TakesLessThanAFifthOfItsCodeObjects) {
  const EmbeddedPack pack = core_pack();
  EmbeddedPackHeader header;
  std::memcpy(&header, pack.data, sizeof(header));
  ASSERT_GT(header.count, 40u);
  uint64_t unpacked = 0;
  for (uint64_t i = 0; i < header.count; ++i) {
    EmbeddedPackEntry entry;
    std::memcpy(&entry, pack.data + sizeof(header) + i * sizeof(entry), sizeof(entry));
    unpacked += entry.size;
  }
  EXPECT_LT(pack.size, unpacked / 5);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::kernels
