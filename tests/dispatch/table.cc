// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "tests/dispatch/table.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>

#include "aiter/runtime/store/digest.h"
#include "kernels/code_object/embedded_pack.h"
#include "tests/support/runtime/pack.h"
#include "tests/support/runtime/tiny_elf.h"

namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity {
namespace {

struct Table {
  std::vector<uint64_t> blob;
  std::vector<unsigned char> pack;
};

Table& the_table() {
  static Table* const table = new Table;
  return *table;
}

kernels::LaunchTable view() {
  return {the_table().blob.data(), launches().data(), static_cast<uint32_t>(launches().size())};
}

}  // namespace

void read_table(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<uint64_t>& blob = the_table().blob;
  blob.resize((bytes.size() + 7) / 8);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(blob.data()));
  if (!kernels::LaunchTable::valid(blob.data(), bytes.size())) {
    throw std::runtime_error(path + " is not a launch table");
  }
  // The rows have keys; their code objects are made here.
  kernels::TableHeader header;
  std::memcpy(&header, blob.data(), sizeof(header));
  auto* object = reinterpret_cast<kernels::CodeObjectRow*>(reinterpret_cast<char*>(blob.data()) +
                                                           header.objects);
  std::map<runtime::Digest, runtime::Bytes> images;
  for (uint32_t i = 0; i < view().row_count(); ++i, ++object) {
    const std::string name(view().name(view().row(i)));
    runtime::Bytes image = testing::tiny_code_object(name, "");
    const runtime::Digest digest = runtime::sha256(image.data(), image.size());
    std::copy(digest.begin(), digest.end(), object->sha256);
    object->size = image.size();
    runtime::Digest key;
    std::copy(std::begin(object->key), std::end(object->key), key.begin());
    images.emplace(key, std::move(image));
  }
  the_table().pack = testing::make_pack(images);
}

}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity

namespace AITER_ATTN_NAMESPACE::kernels {

const LaunchTable& launch_table() {
  static const LaunchTable table = attention::dispatch_parity::view();
  return table;
}

std::vector<EmbeddedPack> embedded_packs() {
  const std::vector<unsigned char>& pack = attention::dispatch_parity::the_table().pack;
  return {{pack.data(), pack.size()}};
}

}  // namespace AITER_ATTN_NAMESPACE::kernels
