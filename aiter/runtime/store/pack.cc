// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/pack.h"

#include <zstd.h>

#include <cstring>

#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

constexpr char kMagic[] = {'A', 'T', 'T', 'N', 'P', 'C', 'K', '1'};
constexpr uint64_t kEntries = sizeof(kMagic) + sizeof(uint64_t);
// What claims to be more is no code object, and is given no memory.
constexpr uint64_t kMostBytes = uint64_t{256} << 20;

}  // namespace

PackProvider::PackProvider(std::string name, const unsigned char* data, uint64_t size)
    : name_(std::move(name)), data_(data), size_(size) {
  if (size < kEntries || std::memcmp(data, kMagic, sizeof(kMagic)) != 0) {
    fail(Status::kCorrupt, name_, " is not a pack of code objects");
  }
  std::memcpy(&count_, data + sizeof(kMagic), sizeof(count_));
  if (count_ > (size - kEntries) / sizeof(PackEntry)) {
    fail(Status::kCorrupt, name_, " is a pack of ", count_, " code objects, but has ", size,
         " bytes");
  }
}

PackEntry PackProvider::entry(uint64_t index) const {
  PackEntry entry;
  std::memcpy(&entry, data_ + kEntries + index * sizeof(entry), sizeof(entry));
  return entry;
}

std::optional<PackEntry> PackProvider::find(const Digest& key) const {
  uint64_t low = 0;
  for (uint64_t high = count_; low < high;) {
    const uint64_t middle = low + (high - low) / 2;
    if (entry(middle).key < key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == count_) return std::nullopt;
  const PackEntry found = entry(low);
  if (found.key != key) return std::nullopt;
  if (found.offset > size_ || found.packed_size > size_ - found.offset) {
    fail(Status::kCorrupt, "code object ", hex(key), " lies outside ", name_);
  }
  return found;
}

std::optional<Bytes> PackProvider::get(const CodeObjectRef& ref) {
  const std::optional<PackEntry> found = find(ref.key);
  if (!found) return std::nullopt;
  // Who asks may know the digest from elsewhere; the pack's own proves that it is not damaged.
  const Digest& expected = ref.sha256 ? *ref.sha256 : found->sha256;
  const unsigned char* frame = data_ + found->offset;
  if (found->size > kMostBytes) {
    fail(Status::kCorrupt, "code object ", hex(ref.key), " in ", name_, " has ", found->size,
         " bytes, but none has more than ", kMostBytes);
  }
  if (ZSTD_getFrameContentSize(frame, found->packed_size) != found->size) {
    fail(Status::kCorrupt, "code object ", hex(ref.key), " in ", name_, " does not unpack to ",
         found->size, " bytes");
  }
  Bytes bytes(found->size);
  const size_t size = ZSTD_decompress(bytes.data(), bytes.size(), frame, found->packed_size);
  if (ZSTD_isError(size)) {
    fail(Status::kCorrupt, "code object ", hex(ref.key), " in ", name_,
         " cannot be unpacked: ", ZSTD_getErrorName(size));
  }
  bytes.resize(size);
  const Digest digest = sha256(bytes.data(), size);
  if (digest != expected) {
    fail(Status::kCorrupt, "code object ", hex(ref.key), " in ", name_, " has sha256 ", hex(digest),
         " instead of ", hex(expected));
  }
  return bytes;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
