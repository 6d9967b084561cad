// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
// compress IN OUT: a file as one zstd frame with a checksum, for `tar --zstd` and others to read.

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "zstd.h"

namespace {

constexpr int kLevel = 19;

int fail(const std::string& what) {
  std::fprintf(stderr, "compress: %s\n", what.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return fail("want two arguments: IN OUT");
  std::ifstream in(argv[1], std::ios::binary);
  const std::string data{std::istreambuf_iterator<char>(in), {}};
  if (!in) return fail(std::string(argv[1]) + " cannot be read");
  ZSTD_CCtx* context = ZSTD_createCCtx();
  if (context == nullptr) return fail("no memory for a zstd context");
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string frame(ZSTD_compressBound(data.size()), '\0');
  const size_t size = ZSTD_compress2(context, frame.data(), frame.size(), data.data(), data.size());
  ZSTD_freeCCtx(context);
  if (ZSTD_isError(size)) return fail(ZSTD_getErrorName(size));
  std::ofstream out(argv[2], std::ios::binary);
  out.write(frame.data(), static_cast<std::streamsize>(size));
  out.close();
  return out ? 0 : fail(std::string(argv[2]) + " cannot be written");
}
