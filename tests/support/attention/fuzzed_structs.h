// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Parts that fuzz targets of the C ABI share: numbers that are mostly right, tensors in memory
// of exactly the size that they reach, and structs of callers of other versions. For
// fuzz_target()s alone, which bring fuzzer/FuzzedDataProvider.h.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "aiter/attn.h"

namespace AITER_ATTN_NAMESPACE::testing {

// A call answers with a status of the header's, and a message where it failed; INTERNAL is no
// answer.
inline void require_answer(attn_status status) {
  const bool ok = status == ATTN_OK;
  if (status < ATTN_OK || status >= ATTN_ERROR_INTERNAL) std::abort();
  if (ok != (std::strlen(attn_last_error()) == 0)) std::abort();
}

class FuzzedStructs {
 protected:
  FuzzedStructs(const uint8_t* data, size_t size) : input_(data, size) {}

  FuzzedDataProvider& input() { return input_; }

  // Mostly the values of a valid call.
  template <typename T>
  T number(T least, T most) {
    if (input_.ConsumeIntegralInRange(0, 63) == 0) return input_.ConsumeIntegral<T>();
    return input_.ConsumeIntegralInRange<T>(least, most);
  }
  bool rarely() { return input_.ConsumeIntegralInRange(0, 15) == 0; }

  void* memory(int64_t bytes) {
    // Not initialised in a C program; here any bytes, the same in each run.
    const unsigned char fill = input_.ConsumeIntegral<uint8_t>();
    owned_.push_back(std::make_unique<unsigned char[]>(bytes));
    std::memset(owned_.back().get(), fill, bytes);
    return owned_.back().get();
  }

  // Memory of a tensor, and at times that of another tensor, too.
  void* tensor_memory(int64_t bytes) {
    if (rarely() && shared_bytes_ >= bytes) return shared_;
    shared_ = memory(bytes);
    shared_bytes_ = bytes;
    return shared_;
  }

  // A copy of a struct in the form of a caller of another version: shorter, longer, or with a size
  // that was never set. Of the size that it says, as far as a struct can be.
  template <typename T>
  T* sent(T value) {
    if (rarely()) value.struct_size = number<int32_t>(0, 2 * sizeof(T));
    const size_t said = value.struct_size;
    const size_t size = said <= 1 << 16 ? std::max(said, sizeof(uint32_t)) : sizeof(uint32_t);
    auto* bytes = static_cast<unsigned char*>(memory(static_cast<int64_t>(size)));
    if (!rarely()) std::memset(bytes, 0, size);
    std::memcpy(bytes, &value, std::min(size, sizeof(T)));
    return reinterpret_cast<T*>(bytes);
  }

 private:
  FuzzedDataProvider input_;
  std::vector<std::unique_ptr<unsigned char[]>> owned_;
  void* shared_ = nullptr;
  int64_t shared_bytes_ = -1;
};

}  // namespace AITER_ATTN_NAMESPACE::testing
