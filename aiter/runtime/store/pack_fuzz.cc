// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A pack of three code objects, or of a dozen with a dictionary, with bytes changed, its end cut
// off or all of it made up, read as the store reads it: it is refused with kCorrupt, or gives bytes
// that have the digest.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "aiter/runtime/error.h"
#include "aiter/runtime/store/pack.h"
#include "tests/support/runtime/pack.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

Digest key_of(unsigned char first) {
  Digest key{};
  key[0] = first;
  return key;
}

constexpr unsigned char kKeys[] = {1, 2, 200};
const std::map<Digest, Bytes> kSimilar = testing::similar_objects();

std::vector<unsigned char> changed_pack(FuzzedDataProvider& input) {
  if (input.ConsumeProbability<float>() < 0.1f) return input.ConsumeRemainingBytes<unsigned char>();
  static const std::vector<unsigned char> whole = testing::make_pack({
      {key_of(kKeys[0]), {}},
      {key_of(kKeys[1]), Bytes(1000, 'a')},
      {key_of(kKeys[2]), {'E', 'L', 'F'}},
  });
  static const std::vector<unsigned char> with_dictionary = testing::make_pack(kSimilar);
  std::vector<unsigned char> pack = input.ConsumeBool() ? with_dictionary : whole;
  if (input.ConsumeBool()) pack.resize(input.ConsumeIntegralInRange<size_t>(0, pack.size()));
  while (input.remaining_bytes() > 0 && !pack.empty()) {
    const size_t at = input.ConsumeIntegralInRange<size_t>(0, pack.size() - 1);
    const auto value = input.ConsumeIntegral<uint64_t>();
    const size_t size = input.PickValueInArray({1, 4, 8});
    std::memcpy(pack.data() + at, &value, std::min(size, pack.size() - at));
  }
  return pack;
}

void read(PackProvider& provider, const Digest& key) {
  std::optional<Bytes> bytes;
  try {
    bytes = provider.get({key, std::nullopt});
    if (!bytes) return;
  } catch (const Error& error) {
    if (error.status() != Status::kCorrupt) std::abort();
    return;
  }
  if (sha256(bytes->data(), bytes->size()) != provider.find(key)->sha256) std::abort();
}

void run(const uint8_t* data, size_t size) {
  FuzzedDataProvider input(data, size);
  const std::vector<unsigned char> pack = changed_pack(input);
  // Of the exact size, so that a byte behind it is not the process's.
  const auto memory = std::make_unique<unsigned char[]>(pack.size());
  std::copy(pack.begin(), pack.end(), memory.get());
  try {
    PackProvider provider("the pack", memory.get(), pack.size());
    for (const unsigned char first : kKeys) read(provider, key_of(first));
    for (const auto& [key, bytes] : kSimilar) read(provider, key);
    Digest key{};
    std::memcpy(key.data(), data, std::min(size, key.size()));
    read(provider, key);
  } catch (const Error& error) {
    if (error.status() != Status::kCorrupt) std::abort();
  }
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  AITER_ATTN_NAMESPACE::runtime::run(data, size);
  return 0;
}
