// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "kernels/code_object/pack_writer.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
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

// The most bytes that a dictionary is trained on: of a large pack a part. Keys are digests, so the
// first objects in their order are a fair sample.
constexpr size_t kMostSampleBytes = size_t{8} << 20;
// A dictionary's size: three eighths of the bytes that it is trained on, of which zstd takes the
// best parts. Less leaves out what siblings share; more is used by single objects.
constexpr size_t kDictionaryEighths = 3;
constexpr size_t kMostDictionaryBytes = size_t{1} << 20;

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

// Empty where zstd finds too little to train on.
Bytes trained_dictionary(const std::vector<PackedObject>& objects) {
  Bytes samples;
  std::vector<size_t> sizes;
  for (const PackedObject& object : objects) {
    if (samples.size() + object.bytes.size() > kMostSampleBytes) break;
    samples.insert(samples.end(), object.bytes.begin(), object.bytes.end());
    sizes.push_back(object.bytes.size());
  }
  Bytes dictionary(std::min(kMostDictionaryBytes, samples.size() / 8 * kDictionaryEighths));
  // All is said: nothing is tried out, on threads or not.
  ZDICT_cover_params_t parameters = {};
  parameters.k = 2000;
  parameters.d = 8;
  parameters.zParams.compressionLevel = kLevel;
  const size_t size =
      ZDICT_trainFromBuffer_cover(dictionary.data(), dictionary.size(), samples.data(),
                                  sizes.data(), static_cast<unsigned>(sizes.size()), parameters);
  dictionary.resize(ZDICT_isError(size) ? 0 : size);
  return dictionary;
}

struct Frames {
  Bytes dictionary;
  Bytes packed_dictionary;
  std::vector<Bytes> objects;

  size_t size() const {
    size_t sum = packed_dictionary.size();
    for (const Bytes& frame : objects) sum += frame.size();
    return sum;
  }
};

Frames compressed(const std::vector<PackedObject>& objects, Bytes dictionary) {
  Frames frames;
  Compressor compress(dictionary);
  for (const PackedObject& object : objects) frames.objects.push_back(compress(object.bytes));
  // Nothing else proves the dictionary: the digest of an entry is that of a code object.
  if (!dictionary.empty()) frames.packed_dictionary = Compressor({}, true)(dictionary);
  frames.dictionary = std::move(dictionary);
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
  Frames frames = compressed(objects, {});
  Frames with_dictionary = compressed(objects, trained_dictionary(objects));
  if (with_dictionary.size() < frames.size()) frames = std::move(with_dictionary);

  EmbeddedPackHeader header = {{'A', 'T', 'T', 'N', 'P', 'C', 'K', '2'}, objects.size()};
  header.dictionary_offset = sizeof(header) + objects.size() * sizeof(EmbeddedPackEntry);
  header.dictionary_packed_size = frames.packed_dictionary.size();
  header.dictionary_size = frames.dictionary.size();
  Bytes pack;
  append(&pack, &header, sizeof(header));
  uint64_t offset = header.dictionary_offset + header.dictionary_packed_size;
  for (size_t i = 0; i < objects.size(); ++i) {
    EmbeddedPackEntry entry = {};
    std::memcpy(entry.key, objects[i].key.data(), sizeof(entry.key));
    std::memcpy(entry.sha256, objects[i].sha256.data(), sizeof(entry.sha256));
    entry.offset = offset;
    entry.packed_size = frames.objects[i].size();
    entry.size = objects[i].bytes.size();
    append(&pack, &entry, sizeof(entry));
    offset += entry.packed_size;
  }
  append(&pack, frames.packed_dictionary.data(), frames.packed_dictionary.size());
  for (const Bytes& frame : frames.objects) append(&pack, frame.data(), frame.size());
  return pack;
}

std::vector<unsigned char> write_frames(const std::vector<PackedObject>& objects) {
  Bytes made;
  append_number(&made, objects.size());
  for (const Bytes& frame : compressed(objects, {}).objects) {
    append_number(&made, frame.size());
    append(&made, frame.data(), frame.size());
  }
  return made;
}

}  // namespace AITER_ATTN_NAMESPACE::kernels
