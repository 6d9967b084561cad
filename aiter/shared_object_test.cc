// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A shared object of the library: its exports, and its needs of the machine. Environment:
// OBJECT is its file, NEWEST_GLIBC is the newest glibc that it may need.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "aiter/attn.h"
#include "aiter/functions.h"
#include "tests/support/runtime/elf_file.h"

namespace {

using AITER_ATTN_NAMESPACE::testing::DynamicSymbols;

// "GLIBC_2.17" -> 217, and so on; other versions -> 0.
int glibc_version(const std::string& version) {
  int major = 0, minor = 0;
  if (std::sscanf(version.c_str(), "GLIBC_%d.%d", &major, &minor) != 2) return 0;
  return major * 100 + minor;
}

class SharedObject : public ::testing::Test {
 protected:
  const DynamicSymbols symbols_ =
      AITER_ATTN_NAMESPACE::testing::read_dynamic_symbols(std::getenv("OBJECT"));
};

TEST_F(SharedObject, ExportsTheCAbi) {
#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)
#define SYMBOL(name) TEXT(ATTN_SYMBOL(name)),
  EXPECT_EQ(symbols_.defined, (std::set<std::string>{ATTN_FUNCTIONS(SYMBOL)}));
  EXPECT_EQ(symbols_.defines,
            std::set<std::string>{"AITER_ATTN_" + std::to_string(ATTN_ABI_VERSION)});
}

// soname_test has a program that is linked with such a library.
TEST_F(SharedObject, HasAName) {
  EXPECT_EQ(symbols_.soname, std::string("lib") + TEXT(AITER_ATTN_NAMESPACE) + "_attn.so." +
                                 std::to_string(ATTN_ABI_VERSION));
}

// Another library of the same names, loaded before, does not take its calls of itself.
TEST_F(SharedObject, BindsItsSymbolsItself) { EXPECT_TRUE(symbols_.flags & DF_SYMBOLIC); }

// short_memory_test shows the reason.
TEST_F(SharedObject, TakesNoMemoryForThreadLocalVariables) {
  EXPECT_TRUE(symbols_.flags & DF_STATIC_TLS);
}

// glibc's libraries; neither a C++ runtime nor a GPU's.
TEST_F(SharedObject, NeedsGlibcAlone) {
  const std::set<std::string> allowed = {"libc.so.6",       "libm.so.6",  "libdl.so.2",
                                         "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"};
  for (const std::string& library : symbols_.needed) EXPECT_TRUE(allowed.count(library)) << library;
  const char* newest = std::getenv("NEWEST_GLIBC");
  for (const std::string& version : symbols_.versions) {
    EXPECT_LE(glibc_version(version), glibc_version(newest)) << version;
  }
}

// In a program with more rights than its user, the environment names no file to load or to write.
TEST_F(SharedObject, ReadsTheEnvironmentWhereItMayBeTrusted) {
  EXPECT_TRUE(symbols_.undefined.count("secure_getenv"));
  EXPECT_FALSE(symbols_.undefined.count("getenv"));
}

}  // namespace
