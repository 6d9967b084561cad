// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Packs: many code objects in one piece of memory, each compressed. All numbers are little-endian:
//
//   magic "ATTNPCK1", uint64 count
//   count entries, sorted by key: key[32], sha256[32] of the object, uint64 offset, packed size, size
//   zstd frames, one per object, where the entries say; offsets count from the magic
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

struct PackEntry {
  Digest key;
  Digest sha256;
  uint64_t offset;
  uint64_t packed_size;
  uint64_t size;
};
static_assert(sizeof(PackEntry) == 88);

// A pack's code objects. The memory must outlive the provider.
class PackProvider : public Provider {
 public:
  // Throws Status::kCorrupt where the memory does not hold a pack.
  PackProvider(std::string name, const unsigned char* data, uint64_t size);
  std::string name() const override { return name_; }
  std::optional<Bytes> get(const CodeObjectRef& ref) override;
  // Throws Status::kCorrupt where the entry lies outside the pack.
  std::optional<PackEntry> find(const Digest& key) const;
  uint64_t count() const { return count_; }
  // index < count(). The entry may be damaged.
  PackEntry entry(uint64_t index) const;

 private:
  std::string name_;
  const unsigned char* data_;
  uint64_t size_;
  uint64_t count_;
};

}  // namespace AITER_ATTN_NAMESPACE::runtime
