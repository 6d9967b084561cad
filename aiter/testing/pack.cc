// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/testing/pack.h"

#include <zstd.h>

namespace AITER_ATTN_NAMESPACE::testing {
namespace {

template <typename T>
void append(std::vector<unsigned char>* pack, const T& value) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&value);
  pack->insert(pack->end(), bytes, bytes + sizeof(value));
}

}  // namespace

std::vector<unsigned char> make_pack(const std::map<runtime::Digest, runtime::Bytes>& objects) {
  const std::string magic = "ATTNPCK1";
  std::vector<unsigned char> pack(magic.begin(), magic.end()), frames;
  append(&pack, uint64_t{objects.size()});
  const size_t first = pack.size() + objects.size() * sizeof(runtime::PackEntry);
  for (const auto& [key, bytes] : objects) {
    std::vector<unsigned char> frame(ZSTD_compressBound(bytes.size()));
    frame.resize(ZSTD_compress(frame.data(), frame.size(), bytes.data(), bytes.size(), 3));
    append(&pack, runtime::PackEntry{key, runtime::sha256(bytes.data(), bytes.size()),
                                     first + frames.size(), frame.size(), bytes.size()});
    frames.insert(frames.end(), frame.begin(), frame.end());
  }
  pack.insert(pack.end(), frames.begin(), frames.end());
  return pack;
}

}  // namespace AITER_ATTN_NAMESPACE::testing
