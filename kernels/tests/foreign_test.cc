// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <foreign_objects.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "kernels/tests/foreign_user.h"

namespace {

std::string contents(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Foreign, FilesAreFoundByTheirNames) {
  for (const char* arch : {"gfx942", "gfx950"}) {
    const std::string path = std::string("hsa/") + arch + "/sums/sum_heads_fp16.co";
    size_t size = 0;
    const auto* const data = static_cast<const char*>(foreign_objects_find(path.c_str(), &size));
    ASSERT_NE(data, nullptr) << path;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 16, 0u);
    EXPECT_EQ(std::string(data, size), contents(std::getenv(arch)));
    EXPECT_EQ(foreign_objects_find(path.c_str(), nullptr), data);
  }
}

TEST(Foreign, OthersAreNotFound) {
  for (const char* path : {"", "hsa/gfx942/sums/sum_heads_fp16",
                           "hsa/gfx90a/sums/sum_heads_fp16.co", "zzz", "sums/sum_heads_fp16.co"}) {
    size_t size = 1;
    EXPECT_EQ(foreign_objects_find(path, &size), nullptr) << path;
    EXPECT_EQ(size, 0u);
  }
}

TEST(Foreign, NamesAreListedInOrder) {
  ASSERT_EQ(foreign_objects_count(), 2u);
  EXPECT_STREQ(foreign_objects_path(0), "hsa/gfx942/sums/sum_heads_fp16.co");
  EXPECT_STREQ(foreign_objects_path(1), "hsa/gfx950/sums/sum_heads_fp16.co");
  EXPECT_EQ(foreign_objects_path(2), nullptr);
}

TEST(Foreign, AProgramInCFindsThem) { EXPECT_EQ(magic_of_first_file(), 0x7f); }

}  // namespace
