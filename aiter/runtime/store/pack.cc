// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/pack.h"

#include <zstd.h>

#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

constexpr char kMagic[] = {'A', 'T', 'T', 'N', 'P', 'C', 'K', '2'};
constexpr uint64_t kDictionary = sizeof(kMagic) + sizeof(uint64_t);
constexpr uint64_t kEntries = kDictionary + sizeof(PackDictionary);
// A larger claim is no dictionary, and is given no memory.
constexpr uint64_t kMostDictionaryBytes = uint64_t{16} << 20;

struct Free {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  void operator()(ZSTD_DDict* dictionary) const { ZSTD_freeDDict(dictionary); }
};
using Context = std::unique_ptr<ZSTD_DCtx, Free>;

template <typename Pointer>
Pointer allocated(Pointer pointer) {
  if (!pointer) throw std::bad_alloc();
  return pointer;
}

bool lies_outside(uint64_t offset, uint64_t size, uint64_t whole) {
  return offset > whole || size > whole - offset;
}

class PackMemory : public PackData {
 public:
  PackMemory(const unsigned char* data, uint64_t size) : data_(data), size_(size) {}
  uint64_t size() const override { return size_; }
  const unsigned char* at(uint64_t offset, uint64_t, Bytes&) const override {
    return data_ + offset;
  }

 private:
  const unsigned char* data_;
  uint64_t size_;
};

}  // namespace

// Without a zstd dictionary where the pack has none.
struct PackProvider::Dictionary {
  std::unique_ptr<ZSTD_DDict, Free> zstd;
  unsigned id = 0;
};

PackProvider::PackProvider(std::string name, std::unique_ptr<const PackData> data)
    : name_(std::move(name)), data_(std::move(data)), size_(data_->size()) {
  constexpr size_t kName = sizeof(kMagic) - 1;
  using Magic = std::array<char, sizeof(kMagic)>;
  const Magic magic = size_ < kEntries ? Magic{} : record<Magic>(0);
  if (std::memcmp(magic.data(), kMagic, kName) != 0) {
    fail(Status::kCorrupt, name_, " is not a pack of code objects");
  }
  if (magic[kName] != kMagic[kName]) {
    fail(Status::kCorrupt, name_, " is a pack of another format than ", kMagic[kName],
         ", the one that this library reads; make it again");
  }
  count_ = record<uint64_t>(sizeof(kMagic));
  if (count_ > (size_ - kEntries) / sizeof(PackEntry)) {
    fail(Status::kCorrupt, name_, " is a pack of ", count_, " code objects, but has ", size_,
         " bytes");
  }
}

PackProvider::PackProvider(std::string name, const unsigned char* data, uint64_t size)
    : PackProvider(std::move(name), std::make_unique<const PackMemory>(data, size)) {}

PackProvider::~PackProvider() { delete dictionary_.load(std::memory_order_acquire); }

std::unique_ptr<const PackProvider::Dictionary> PackProvider::unpacked_dictionary() const {
  auto made = std::make_unique<Dictionary>();
  const PackDictionary place = dictionary_place();
  if (place.size == 0) return made;
  if (lies_outside(place.offset, place.packed_size, size_)) {
    fail(Status::kCorrupt, "the dictionary of ", name_, " lies outside it");
  }
  if (place.size > kMostDictionaryBytes) {
    fail(Status::kCorrupt, "the dictionary of ", name_, " has ", place.size,
         " bytes, but none has more than ", kMostDictionaryBytes);
  }
  Bytes room;
  const unsigned char* frame = data_->at(place.offset, place.packed_size, room);
  if (ZSTD_getFrameContentSize(frame, place.packed_size) != place.size) {
    fail(Status::kCorrupt, "the dictionary of ", name_, " does not unpack to ", place.size,
         " bytes");
  }
  Bytes bytes(place.size);
  const size_t size = ZSTD_decompress(bytes.data(), bytes.size(), frame, place.packed_size);
  if (ZSTD_isError(size)) {
    fail(Status::kCorrupt, "the dictionary of ", name_,
         " cannot be unpacked: ", ZSTD_getErrorName(size));
  }
  made->id = ZSTD_getDictID_fromDict(bytes.data(), size);
  if (made->id != 0) made->zstd.reset(ZSTD_createDDict(bytes.data(), size));
  if (!made->zstd) {
    fail(Status::kCorrupt, "the dictionary of ", name_, " is not one of zstd's");
  }
  return made;
}

template <typename Record>
Record PackProvider::record(uint64_t offset) const {
  Bytes room;
  Record record;
  std::memcpy(&record, data_->at(offset, sizeof(record), room), sizeof(record));
  return record;
}

PackDictionary PackProvider::dictionary_place() const {
  return record<PackDictionary>(kDictionary);
}

const PackProvider::Dictionary& PackProvider::dictionary() {
  const Dictionary* known = dictionary_.load(std::memory_order_acquire);
  if (known) return *known;
  std::unique_ptr<const Dictionary> made = unpacked_dictionary();
  if (dictionary_.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) {
    return *made.release();
  }
  return *known;
}

PackEntry PackProvider::entry(uint64_t index) const {
  return record<PackEntry>(kEntries + index * sizeof(PackEntry));
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
  if (lies_outside(found.offset, found.packed_size, size_)) {
    fail(Status::kCorrupt, "code object ", hex(key), " lies outside ", name_);
  }
  return found;
}

uint64_t PackProvider::size_of(const Digest& key) const {
  const std::optional<PackEntry> found = find(key);
  return found ? found->packed_size + dictionary_place().packed_size / count_ : 0;
}

Answer PackProvider::look(const CodeObjectRef& ref) {
  return find(ref.key) ? Answer{true, "has it"} : Answer{};
}

std::optional<Bytes> PackProvider::get(const CodeObjectRef& ref) {
  const std::optional<PackEntry> found = find(ref.key);
  if (!found) return std::nullopt;
  // The caller may know the digest from elsewhere; the pack's own proves that it is not damaged.
  const Digest& expected = ref.sha256 ? *ref.sha256 : found->sha256;
  if (found->size > kMostObjectBytes) {
    fail(Status::kCorrupt, "code object ", hex(ref.key), " in ", name_, " has ", found->size,
         " bytes, but none has more than ", kMostObjectBytes);
  }
  Bytes room;
  const unsigned char* frame = data_->at(found->offset, found->packed_size, room);
  if (ZSTD_getFrameContentSize(frame, found->packed_size) != found->size) {
    fail(Status::kCorrupt, "code object ", hex(ref.key), " in ", name_, " does not unpack to ",
         found->size, " bytes");
  }
  const Dictionary& own = dictionary();
  const unsigned wanted = ZSTD_getDictID_fromFrame(frame, found->packed_size);
  if (wanted != own.id) {
    fail(Status::kCorrupt, "code object ", hex(ref.key), " in ", name_, " was packed with ",
         "dictionary ", wanted, ", but the pack's is ", own.id, " (0: none)");
  }
  Bytes bytes(found->size);
  const Context context = allocated(Context(ZSTD_createDCtx()));
  const size_t size = ZSTD_decompress_usingDDict(context.get(), bytes.data(), bytes.size(), frame,
                                                 found->packed_size, own.zstd.get());
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
