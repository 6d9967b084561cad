// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "kernels/code_object/pack_writer.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "kernels/code_object/embedded_pack.h"
#include "zstd.h"

#define ZDICT_STATIC_LINKING_ONLY
#include "zdict.h"

namespace AITER_ATTN_NAMESPACE::kernels {
namespace {

using Bytes = std::vector<unsigned char>;

// Code objects are small and compressed once: the strongest level that needs no large window.
constexpr int kLevel = 19;

// The most bytes that a dictionary is trained on, and that are compressed with and without: of a
// large pack a part. Keys are digests, so the first objects in their order are a fair sample.
constexpr size_t kMostSampleBytes = size_t{64} << 20;
constexpr size_t kMostTriedBytes = size_t{8} << 20;
// A dictionary's size: three eighths of the bytes that it is trained on, of which zstd takes the
// best parts. Less leaves out what siblings share; more is used by single objects, and a process
// that loads a code object has all of it in memory.
constexpr size_t kDictionaryEighths = 3;
constexpr size_t kMostDictionaryBytes = size_t{6} << 20;

size_t checked(size_t result) {
  if (ZSTD_isError(result)) {
    throw std::runtime_error(std::string("zstd: ") + ZSTD_getErrorName(result));
  }
  return result;
}

class Compressor {
 public:
  explicit Compressor(const Bytes& dictionary, bool checksum = false)
      : context_(ZSTD_createCCtx()) {
    if (!context_) throw std::bad_alloc();
    checked(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kLevel));
    checked(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, checksum));
    if (!dictionary.empty()) {
      checked(ZSTD_CCtx_loadDictionary(context_.get(), dictionary.data(), dictionary.size()));
    }
  }

  Bytes operator()(const Bytes& bytes) {
    Bytes frame(ZSTD_compressBound(bytes.size()));
    frame.resize(checked(
        ZSTD_compress2(context_.get(), frame.data(), frame.size(), bytes.data(), bytes.size())));
    return frame;
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> context_;
};

using Objects = std::vector<PackedObject>;

// The end of the first objects that have `most` bytes: of a small pack all.
Objects::const_iterator end_of(const Objects& objects, size_t most) {
  size_t size = 0;
  return std::find_if(objects.begin(), objects.end(), [&size, most](const PackedObject& object) {
    size += object.bytes.size();
    return size > most;
  });
}

// Empty where zstd finds too little to train on.
Bytes trained_dictionary(Objects::const_iterator first, Objects::const_iterator last) {
  Bytes samples;
  std::vector<size_t> sizes;
  for (; first != last; ++first) {
    samples.insert(samples.end(), first->bytes.begin(), first->bytes.end());
    sizes.push_back(first->bytes.size());
  }
  Bytes dictionary(std::min(kMostDictionaryBytes, samples.size() / 8 * kDictionaryEighths));
  // All is said: nothing is tried out, on threads or not.
  ZDICT_fastCover_params_t parameters = {};
  parameters.k = 2000;
  parameters.d = 8;
  parameters.f = 24;
  parameters.accel = 1;
  parameters.zParams.compressionLevel = kLevel;
  const size_t size = ZDICT_trainFromBuffer_fastCover(
      dictionary.data(), dictionary.size(), samples.data(), sizes.data(),
      static_cast<unsigned>(sizes.size()), parameters);
  dictionary.resize(ZDICT_isError(size) ? 0 : size);
  return dictionary;
}

// Objects that are worth a further thread, which has to load the dictionary. The action that packs
// asks for as many processors: private/pack.bzl.
constexpr size_t kObjectsOfThread = 64;
constexpr unsigned kMostThreads = 8;

// The frames of objects, on the machine's processors. A frame depends on its object and the
// dictionary alone, so that it does not matter which thread makes it.
std::vector<Bytes> frames_of(Objects::const_iterator first, Objects::const_iterator last,
                             const Bytes& dictionary) {
  const auto count = static_cast<size_t>(last - first);
  std::vector<Bytes> frames(count);
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    Compressor compress(dictionary);
    for (size_t i = next++; i < count; i = next++) {
      frames[i] = compress(first[static_cast<ptrdiff_t>(i)].bytes);
    }
  };
  const size_t most = std::min(kMostThreads, std::thread::hardware_concurrency());
  std::vector<std::future<void>> others;
  for (size_t i = std::min(most, count / kObjectsOfThread); i > 1; --i) {
    others.push_back(std::async(std::launch::async, work));
  }
  work();
  for (std::future<void>& other : others) other.get();
  return frames;
}

class Frames {
 public:
  explicit Frames(Bytes dictionary) : dictionary_(std::move(dictionary)) {
    // Nothing else proves the dictionary: the digest of an entry is that of a code object.
    if (!dictionary_.empty()) packed_dictionary_ = Compressor({}, true)(dictionary_);
  }

  void add(Objects::const_iterator first, Objects::const_iterator last) {
    for (Bytes& frame : frames_of(first, last, dictionary_)) objects_.push_back(std::move(frame));
  }

  // Of a pack of `count` objects, by those that there are.
  size_t size_of(size_t count) const {
    size_t sum = 0;
    for (const Bytes& frame : objects_) sum += frame.size();
    return packed_dictionary_.size() + sum * count / std::max<size_t>(1, objects_.size());
  }

  const Bytes& dictionary() const { return dictionary_; }
  const Bytes& packed_dictionary() const { return packed_dictionary_; }
  const std::vector<Bytes>& objects() const { return objects_; }

 private:
  Bytes dictionary_;
  Bytes packed_dictionary_;
  std::vector<Bytes> objects_;
};

// With a dictionary or without, whichever is smaller. Of a large pack a part decides: all of it
// would take twice the time.
Frames compressed(const Objects& objects) {
  const auto tried = end_of(objects, kMostTriedBytes);
  Frames frames({});
  frames.add(objects.begin(), tried);
  Frames with_dictionary(trained_dictionary(objects.begin(), end_of(objects, kMostSampleBytes)));
  with_dictionary.add(objects.begin(), tried);
  if (with_dictionary.size_of(objects.size()) < frames.size_of(objects.size())) {
    frames = std::move(with_dictionary);
  }
  frames.add(tried, objects.end());
  return frames;
}

void append(Bytes* pack, const void* bytes, size_t size) {
  const auto* first = static_cast<const unsigned char*>(bytes);
  pack->insert(pack->end(), first, first + size);
}

void append_number(Bytes* bytes, size_t number) {
  for (int shift = 0; shift < 32; shift += 8) {
    bytes->push_back(static_cast<unsigned char>(number >> shift));
  }
}

}  // namespace

std::vector<unsigned char> write_pack(std::vector<PackedObject> objects) {
  std::sort(objects.begin(), objects.end(),
            [](const PackedObject& a, const PackedObject& b) { return a.key < b.key; });
  const auto same = [](const PackedObject& a, const PackedObject& b) { return a.key == b.key; };
  if (std::adjacent_find(objects.begin(), objects.end(), same) != objects.end()) {
    throw std::runtime_error("two code objects of a pack have the same key");
  }
  const Frames frames = compressed(objects);

  EmbeddedPackHeader header = {{'A', 'T', 'T', 'N', 'P', 'C', 'K', '2'}, objects.size()};
  header.dictionary_offset = sizeof(header) + objects.size() * sizeof(EmbeddedPackEntry);
  header.dictionary_packed_size = frames.packed_dictionary().size();
  header.dictionary_size = frames.dictionary().size();
  Bytes pack;
  append(&pack, &header, sizeof(header));
  uint64_t offset = header.dictionary_offset + header.dictionary_packed_size;
  for (size_t i = 0; i < objects.size(); ++i) {
    EmbeddedPackEntry entry = {};
    std::memcpy(entry.key, objects[i].key.data(), sizeof(entry.key));
    std::memcpy(entry.sha256, objects[i].sha256.data(), sizeof(entry.sha256));
    entry.offset = offset;
    entry.packed_size = frames.objects()[i].size();
    entry.size = objects[i].bytes.size();
    append(&pack, &entry, sizeof(entry));
    offset += entry.packed_size;
  }
  append(&pack, frames.packed_dictionary().data(), frames.packed_dictionary().size());
  for (const Bytes& frame : frames.objects()) append(&pack, frame.data(), frame.size());
  return pack;
}

std::vector<unsigned char> write_frames(const std::vector<PackedObject>& objects) {
  Bytes made;
  append_number(&made, objects.size());
  Frames frames({});
  frames.add(objects.begin(), objects.end());
  for (const Bytes& frame : frames.objects()) {
    append_number(&made, frame.size());
    append(&made, frame.data(), frame.size());
  }
  return made;
}

}  // namespace AITER_ATTN_NAMESPACE::kernels
