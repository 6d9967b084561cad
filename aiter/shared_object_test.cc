// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A shared object of the library: what it exports, and what it needs of the machine. Environment:
// OBJECT and VERSION_SCRIPT are files, NEWEST_GLIBC is what its glibc may not exceed.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include "tests/support/runtime/elf_file.h"

namespace {

using AITER_ATTN_NAMESPACE::testing::DynamicSymbols;

// The names between "global:" and "local:".
std::set<std::string> exported_by(const char* version_script) {
  std::ifstream file(version_script);
  std::set<std::string> names;
  bool global = false;
  for (std::string word; file >> word;) {
    if (word == "global:" || word == "local:") {
      global = word == "global:";
    } else if (global && word.back() == ';') {
      names.insert(word.substr(0, word.size() - 1));
    }
  }
  return names;
}

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

TEST_F(SharedObject, ExportsWhatTheVersionScriptSays) {
  const std::set<std::string> wanted = exported_by(std::getenv("VERSION_SCRIPT"));
  EXPECT_FALSE(wanted.empty());
  EXPECT_EQ(symbols_.defined, wanted);
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
