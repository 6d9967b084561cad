// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A shared object of the library: what it exports, and what it needs of the machine. Arguments: the
// object, its version script, and what its glibc may not exceed.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "aiter/testing/elf_file.h"

namespace {

using aiter_attn::testing::DynamicSymbols;

int failures = 0;

void fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  ++failures;
}

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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s OBJECT VERSION_SCRIPT GLIBC_x.y\n", argv[0]);
    return 2;
  }
  const DynamicSymbols symbols = aiter_attn::testing::read_dynamic_symbols(argv[1]);
  const std::set<std::string> wanted = exported_by(argv[2]);
  if (wanted.empty()) fail(std::string(argv[2]) + " exports nothing");
  for (const std::string& name : wanted) {
    if (!symbols.defined.count(name)) fail("not exported: " + name);
  }
  for (const std::string& name : symbols.defined) {
    if (!wanted.count(name)) fail("exported, but not in the version script: " + name);
  }
  // glibc's own; neither a C++ runtime nor a GPU's.
  const std::set<std::string> allowed = {"libc.so.6",       "libm.so.6",  "libdl.so.2",
                                         "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"};
  for (const std::string& library : symbols.needed) {
    if (!allowed.count(library)) fail("needs " + library);
  }
  for (const std::string& version : symbols.versions) {
    if (glibc_version(version) > glibc_version(argv[3])) {
      fail("needs " + version + ", newer than " + argv[3]);
    }
  }
  return failures != 0;
}
