// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Packs: many code objects in one piece of memory, each compressed. All numbers are little-endian:
//
//   magic "ATTNPCK2", uint64 count
//   the dictionary's uint64 offset, packed size, size; size 0: there is none
//   count entries, sorted by key: key[32], sha256[32] of the object, uint64 offset, packed size, size
//   zstd frames where these say: the dictionary's, with a checksum, and one per object, compressed
//   with the dictionary; offsets count from the magic
//
// The frames of objects name their dictionary by its zstd ID.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
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

struct PackDictionary {
  uint64_t offset;
  uint64_t packed_size;
  uint64_t size;
};

// The bytes of a pack, in memory or elsewhere.
class PackData {
 public:
  virtual ~PackData() = default;
  virtual uint64_t size() const = 0;
  // The size bytes at offset, which lie in the pack; they are put into room unless they are in
  // memory, and live as long as that. Throws Status::kCorrupt where they can no longer be read.
  virtual const unsigned char* at(uint64_t offset, uint64_t size, Bytes& room) const = 0;
};

// A pack's code objects.
class PackProvider : public Provider {
 public:
  // Throws Status::kCorrupt where the data is no pack.
  PackProvider(std::string name, std::unique_ptr<const PackData> data);
  // In memory, which must outlive the provider.
  PackProvider(std::string name, const unsigned char* data, uint64_t size);
  ~PackProvider() override;
  std::string name() const override { return name_; }
  std::optional<Bytes> get(const CodeObjectRef& ref) override;
  Answer look(const CodeObjectRef& ref) override;
  // Throws Status::kCorrupt where the entry lies outside the pack.
  std::optional<PackEntry> find(const Digest& key) const;
  // The bytes that a code object takes in the pack: its frame, and its share of the dictionary.
  // Zero: it is not in it.
  uint64_t size_of(const Digest& key) const;
  uint64_t count() const { return count_; }
  // index < count(). The entry may be damaged.
  PackEntry entry(uint64_t index) const;

 private:
  struct Dictionary;
  // Made at its first use: threads that come at the same time may each make one, and none waits.
  const Dictionary& dictionary();
  std::unique_ptr<const Dictionary> unpacked_dictionary() const;
  // It may be damaged.
  PackDictionary dictionary_place() const;
  template <typename Record>
  Record record(uint64_t offset) const;

  std::string name_;
  const std::unique_ptr<const PackData> data_;
  const uint64_t size_;
  uint64_t count_;
  std::atomic<const Dictionary*> dictionary_{nullptr};
};

}  // namespace AITER_ATTN_NAMESPACE::runtime
