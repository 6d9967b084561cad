// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "tests/support/runtime/pack.h"

#include <utility>

#include "kernels/code_object/pack_writer.h"

namespace AITER_ATTN_NAMESPACE::testing {

std::vector<unsigned char> make_pack(const std::map<runtime::Digest, runtime::Bytes>& objects) {
  std::vector<kernels::PackedObject> packed;
  packed.reserve(objects.size());
  for (const auto& [key, bytes] : objects) {
    packed.push_back({key, runtime::sha256(bytes.data(), bytes.size()), bytes});
  }
  return kernels::write_pack(std::move(packed));
}

std::vector<unsigned char> make_pack_file(const std::map<runtime::Digest, runtime::Bytes>& objects,
                                          const std::string& version) {
  const std::vector<unsigned char> pack = make_pack(objects);
  const uint64_t sizes[] = {pack.size(), 40 + 88 * objects.size()};
  const runtime::Digest index = runtime::sha256(pack.data(), sizes[1]);
  std::string header = "ATTNPKF1" + version;
  header.resize(40);
  header += "aiter-attn-kernels-test";
  header.resize(104);
  header.append(reinterpret_cast<const char*>(sizes), sizeof(sizes));
  header.append(index.begin(), index.end());
  std::vector<unsigned char> file(header.begin(), header.end());
  file.insert(file.end(), pack.begin(), pack.end());
  return file;
}

std::map<runtime::Digest, runtime::Bytes> similar_objects() {
  std::map<runtime::Digest, runtime::Bytes> objects;
  for (unsigned char i = 0; i < 12; ++i) {
    runtime::Bytes bytes;
    uint32_t state = 1;
    for (int word = 0; word < 600; ++word) {
      state = state * 1664525 + 1013904223;
      // Of every object another part is its own.
      const uint32_t value = word / 50 == i ? state * (i + 7) : state;
      for (int shift = 0; shift < 32; shift += 8) {
        bytes.push_back(static_cast<unsigned char>(value >> shift));
      }
    }
    runtime::Digest key = {};
    key[0] = static_cast<unsigned char>(i * 20);
    objects[key] = bytes;
  }
  return objects;
}

}  // namespace AITER_ATTN_NAMESPACE::testing
