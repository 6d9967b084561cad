// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The dynamic linker's view of a shared object's file.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace AITER_ATTN_NAMESPACE::testing {

struct DynamicSymbols {
  std::set<std::string> defined;    // that the object exports
  std::set<std::string> undefined;  // that it takes from others
  std::set<std::string> needed;     // the libraries that it names
  std::string soname;               // the name that programs need it by; "" if it has none
  std::set<std::string> versions;   // of the symbols that it takes: "GLIBC_2.34"
  std::set<std::string> defines;    // versions of the symbols that it exports
  uint64_t flags = 0;               // DT_FLAGS: DF_SYMBOLIC, DF_STATIC_TLS
};

// Throws std::runtime_error where path is not a 64-bit ELF file.
DynamicSymbols read_dynamic_symbols(const std::string& path);

}  // namespace AITER_ATTN_NAMESPACE::testing
