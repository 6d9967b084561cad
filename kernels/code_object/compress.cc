// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// compress IN OUT: OUT becomes one zstd frame that holds IN and its size. The bytes depend on
// nothing but IN's contents: one thread, a fixed level, no dictionary.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "zstd.h"

namespace {

// Code objects are small and compressed once: the strongest level that needs no large window.
constexpr int kLevel = 19;

int fail(const std::string& what) {
  std::fprintf(stderr, "compress: %s\n", what.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return fail("usage: compress IN OUT");
  std::ifstream in(argv[1], std::ios::binary);
  if (!in) return fail(std::string("cannot read ") + argv[1]);
  const std::vector<char> data{std::istreambuf_iterator<char>(in), {}};

  std::vector<char> packed(ZSTD_compressBound(data.size()));
  const size_t size = ZSTD_compress(packed.data(), packed.size(), data.data(), data.size(), kLevel);
  if (ZSTD_isError(size)) return fail(ZSTD_getErrorName(size));

  std::ofstream out(argv[2], std::ios::binary);
  out.write(packed.data(), static_cast<std::streamsize>(size));
  out.close();
  if (!out) return fail(std::string("cannot write ") + argv[2]);
  return 0;
}
