// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// This program is linked with the shared library, and names it by its SONAME alone: it runs where
// the library lies, whatever the path was that it was linked by. Environment: OBJECT is the
// library's file.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "aiter/attn.h"
#include "tests/support/runtime/elf_file.h"

namespace {

using AITER_ATTN_NAMESPACE::testing::read_dynamic_symbols;

#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)
const std::string kSoname =
    "lib" TEXT(AITER_ATTN_NAMESPACE) "_attn.so." + std::to_string(ATTN_ABI_VERSION);

TEST(Soname, IsTheNamespacesAndTheAbis) {
  const std::string file = std::getenv("OBJECT");
  EXPECT_EQ(read_dynamic_symbols(file).soname, kSoname);
  EXPECT_EQ(file.substr(file.rfind('/') + 1), kSoname);
}

TEST(Soname, IsAllThatAProgramKnowsOfItsPlace) {
  const std::set<std::string> needed = read_dynamic_symbols("/proc/self/exe").needed;
  EXPECT_EQ(needed.count(kSoname), 1);
  for (const std::string& library : needed) {
    EXPECT_EQ(library.find('/'), std::string::npos) << library;
  }
  EXPECT_EQ(attn_abi_version(), ATTN_ABI_VERSION);
}

}  // namespace
