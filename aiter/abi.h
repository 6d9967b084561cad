// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The struct_size protocol of aiter/attn.h: how a caller's struct, compiled against this or another
// version of the header, is read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "aiter/attn.h"
#include "aiter/error.h"

namespace aiter_attn {

// The size each struct had in ABI version 1. Fields are only ever appended, so this is the least
// that any caller may pass, and the layout up to here is frozen.
inline constexpr size_t kFwdArgsSizeV1 = 232;
inline constexpr size_t kBwdArgsSizeV1 = 376;
inline constexpr size_t kKernelInfoSizeV1 = 64;
static_assert(sizeof(attn_problem) == 88 && sizeof(attn_tensor) == 32, "nested structs are frozen");
static_assert(sizeof(attn_fwd_args) >= kFwdArgsSizeV1, "fields are only ever appended");
static_assert(sizeof(attn_bwd_args) >= kBwdArgsSizeV1, "fields are only ever appended");
static_assert(sizeof(attn_kernel_info_t) >= kKernelInfoSizeV1, "fields are only ever appended");

// Refuses a struct_size that is too short, and a longer one whose fields beyond this library's
// struct are set.
template <typename T>
void check_struct(const T* args, const char* type, size_t least) {
  if (!args) fail(ATTN_ERROR_INVALID_ARGUMENT, type, " is NULL: pass a pointer to the struct");
  const size_t size = args->struct_size;
  if (size < least) {
    fail(ATTN_ERROR_ABI_MISMATCH, type, ".struct_size is ", size, ", but version ",
         ATTN_ABI_VERSION, " of the ABI has at least ", least, " bytes: set it to sizeof(", type,
         ") and compile against this library's attn.h");
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(args);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] != 0) {
      fail(ATTN_ERROR_ABI_MISMATCH, type, ".struct_size is ", size, ", and byte ", i,
           " is set, but this library knows ", sizeof(T),
           " bytes: leave newer fields zero or use a newer library");
    }
  }
  if (args->reserved != 0) {
    fail(ATTN_ERROR_ABI_MISMATCH, type, ".reserved is ", args->reserved,
         ", but must be 0: zero the struct before you fill it in");
  }
}

// The caller's args as this library's struct: fields that an older caller does not have are zero.
template <typename T>
T read_struct(const T* args, const char* type, size_t least) {
  check_struct(args, type, least);
  T copy{};
  std::memcpy(&copy, args, std::min<size_t>(args->struct_size, sizeof(T)));
  return copy;
}

}  // namespace aiter_attn
