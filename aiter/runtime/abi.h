// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The struct_size protocol of the C ABI: how a caller's struct, compiled against this or another
// version of its header, is read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::runtime {

// A struct's name, and the size that it had when it joined the ABI: the least that a caller passes.
// Its layout up to there is frozen.
template <typename T>
struct AbiStruct;
#define ATTN_ABI_STRUCT(type, least)                      \
  template <>                                             \
  struct AITER_ATTN_NAMESPACE::runtime::AbiStruct<type> { \
    static constexpr const char* kName = #type;           \
    static constexpr size_t kLeast = least;               \
  }

// No struct grows beyond this; a struct_size that exceeds it was never set.
inline constexpr size_t kMostStructSize = 64 << 10;

// Sizes of structs are multiples of this, so that no field is read in part.
inline constexpr size_t kStructAlignment = 8;

// Refuses a struct_size that no version of the struct has, and a longer struct than this library's
// whose further fields are set.
template <typename T>
void check_struct(const T* given) {
  constexpr const char* kName = AbiStruct<T>::kName;
  constexpr size_t kLeast = AbiStruct<T>::kLeast;
  static_assert(sizeof(T) >= kLeast, "fields are only ever appended");
  static_assert(alignof(T) == kStructAlignment && kLeast % kStructAlignment == 0);
  if (!given) {
    fail(Status::kInvalidArgument, kName, " is NULL: pass a pointer to the struct");
  }
  const size_t size = given->struct_size;
  if (size < kLeast || size > kMostStructSize || size % kStructAlignment != 0) {
    fail(Status::kAbiMismatch, kName, ".struct_size is ", size, ", but must be from ", kLeast,
         " to ", kMostStructSize, " and a multiple of ", kStructAlignment, ": set it to sizeof(",
         kName, ") and compile against this library's header");
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] != 0) {
      fail(Status::kAbiMismatch, kName, ".struct_size is ", size, ", and byte ", i,
           " is set, but this library knows ", sizeof(T),
           " bytes: leave newer fields zero or use a newer library");
    }
  }
}

// The caller's struct as this library's: fields that an older caller does not have are zero.
template <typename T>
T read_struct(const T* given) {
  check_struct(given);
  T copy{};
  std::memcpy(&copy, given, std::min<size_t>(given->struct_size, sizeof(T)));
  copy.struct_size = sizeof(T);
  return copy;
}

// Writes an answer into the caller's struct, as far as the caller knows it. Its struct_size stays.
template <typename T>
void write_struct(T answer, T* given) {
  answer.struct_size = given->struct_size;
  std::memcpy(given, &answer, std::min<size_t>(given->struct_size, sizeof(T)));
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
