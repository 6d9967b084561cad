// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// table_probe BLOB: C++'s reading of a launch table, as one JSON document; "valid": false alone
// where it is none.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "kernels/launch_table/launch_table.h"

using namespace AITER_ATTN_NAMESPACE::kernels;

namespace {

std::string hex(const uint8_t (&bytes)[32]) {
  std::string text;
  char digits[3];
  for (const uint8_t byte : bytes) {
    std::snprintf(digits, sizeof(digits), "%02x", byte);
    text += digits;
  }
  return text;
}

void print_row(const LaunchTable& table, const Row& row) {
  std::printf("{\"name\": \"%s\", \"launch\": %u, \"kernarg_size\": %u, ", table.name(row).data(),
              row.launch, row.kernarg_size);
  std::printf("\"tile\": [%u, %u, %u, %u], \"alignment\": %u, \"kind\": \"%s\", ",
              row.tile_seqlen_q, row.tile_seqlen_k, row.tile_head_size_qk, row.tile_head_size_v,
              row.head_size_alignment, name_of(row.traits.kind));
  std::printf("\"traits\": [");
  const char* separator = "";
  for (const TraitInfo& trait : kTraits) {
    std::printf("%s%u", separator, trait.value(row.traits));
    separator = ", ";
  }
  std::printf("], \"exact_key\": %llu, \"found\": [",
              static_cast<unsigned long long>(exact_key(row.traits)));
  separator = "";
  for (const uint32_t index : table.rows(exact_key(row.traits))) {
    std::printf("%s%u", separator, index);
    separator = ", ";
  }
  std::printf("], \"buckets\": [");
  separator = "";
  for (const Bucket& bucket : table.buckets(row.traits.kind, row.traits.dtype)) {
    std::printf("%s[%u, %u]", separator, bucket.head_size_qk, bucket.head_size_v);
    separator = ", ";
  }
  std::printf("], \"objects\": {");
  separator = "";
  for (uint32_t a = 0; a < table.arch_count(); ++a) {
    const CodeObjectRow* const object = table.object(row, static_cast<int>(a));
    if (!object) continue;
    std::printf("%s\"%s\": [\"%s\", \"%s\", %llu, [%u, %u, %u], ", separator, table.arch(a).data(),
                hex(object->key).c_str(), hex(object->sha256).c_str(),
                static_cast<unsigned long long>(object->size), object->block[0], object->block[1],
                object->block[2]);
    std::printf("\"%s\", \"%s\", %s, %u, ", table.arch(*object).data(), hex(object->source).c_str(),
                object->recipe ? table.recipe(*object).data() : "null", object->hazards);
    const std::string_view group = table.group(*object);
    std::printf("\"%.*s\"]", static_cast<int>(group.size()), group.data());
    separator = ", ";
  }
  std::printf("}}");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  std::ifstream in(argv[1], std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  std::vector<uint64_t> blob((bytes.size() + 7) / 8);  // aligned
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(blob.data()));
  if (!LaunchTable::valid(blob.data(), bytes.size())) {
    std::printf("{\"valid\": false}\n");
    return 0;
  }
  const LaunchTable table(blob.data(), nullptr, 0);
  std::printf("{\"valid\": true, \"variant_set\": \"%s\", \"no_arch\": %d, \"no_rows\": %zu, ",
              table.variant_set().data(), table.find_arch("gfx"), table.rows(~uint64_t{0}).size());
  std::printf("\"rows\": [");
  for (uint32_t i = 0; i < table.row_count(); ++i) {
    if (i) std::printf(",\n");
    print_row(table, table.row(i));
  }
  std::printf("]}\n");
  return 0;
}
