// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Structs that have grown since they joined the ABI, as every struct of the C ABI may.
#include "aiter/runtime/abi.h"

#include <gtest/gtest.h>

#include <string>

namespace AITER_ATTN_NAMESPACE::runtime {

struct Grown {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t first;
  uint64_t second;  // joined later
};

template <>
struct AbiStruct<Grown> {
  static constexpr const char* kName = "Grown";
  static constexpr size_t kLeast = 16;
};

namespace {

TEST(AbiTest, WhatAnOlderCallerDoesNotHaveIsZero) {
  // Memory behind the older struct is not the caller's.
  Grown given = {16, 0, 7, 0xdead};
  const Grown read = read_struct(&given);
  EXPECT_EQ(read.first, 7u);
  EXPECT_EQ(read.second, 0u);
  EXPECT_EQ(read.struct_size, sizeof(Grown));
}

TEST(AbiTest, TodaysCallerIsReadWhole) {
  Grown given = {sizeof(Grown), 0, 7, 8};
  EXPECT_EQ(read_struct(&given).second, 8u);
}

TEST(AbiTest, AnswersEndWhereTheCallersStructDoes) {
  Grown given = {16, 0, 0, 0xdead};
  write_struct(Grown{0, 0, 1, 2}, &given);
  EXPECT_EQ(given.struct_size, 16u);
  EXPECT_EQ(given.first, 1u);
  EXPECT_EQ(given.second, 0xdeadu);
}

TEST(AbiTest, ASizeWithinAFieldIsRefused) {
  for (const uint32_t size : {17u, 20u, 23u, 28u}) {
    Grown given = {size, 0, 7, 0xffffffffffffffff};
    try {
      read_struct(&given);
      ADD_FAILURE() << size;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::kAbiMismatch);
      EXPECT_EQ(std::string(error.what()),
                "Grown.struct_size is " + std::to_string(size) +
                    ", but must be from 16 to 65536 and a multiple of 8: set it to sizeof(Grown) "
                    "and compile against this library's header");
    }
  }
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
