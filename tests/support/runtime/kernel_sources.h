// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Texts as contents of files and packs, for tests of compilers: the pack of kernels' sources that
// aiter/runtime/kit/kernel_sources.h reads.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "aiter/runtime/store/store.h"
#include "tests/support/runtime/pack.h"

namespace AITER_ATTN_NAMESPACE::testing {

inline runtime::Bytes bytes(const std::string& text) { return {text.begin(), text.end()}; }

inline runtime::Digest digest(const std::string& text) {
  return runtime::sha256(text.data(), text.size());
}

inline std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Makes its folder as well.
inline void write(const std::filesystem::path& path, const runtime::Bytes& content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(content.data()),
             static_cast<std::streamsize>(content.size()));
}

// A header tree of these names and contents, in the order given.
inline std::string header_listing(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string text;
  for (const auto& [name, content] : files)
    text += runtime::hex(digest(content)) + " " + name + "\n";
  return text;
}

// Sources, listings of header trees and headers.
inline void write_kernel_sources(const std::filesystem::path& path,
                                 const std::vector<std::string>& texts,
                                 const std::string& version) {
  std::map<runtime::Digest, runtime::Bytes> pack;
  for (const std::string& text : texts) pack[digest(text)] = bytes(text);
  write(path, make_pack_file(pack, version));
}

}  // namespace AITER_ATTN_NAMESPACE::testing
