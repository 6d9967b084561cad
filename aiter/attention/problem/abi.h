// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Structs of aiter/attn.h that passes share, as the struct_size protocol reads them; the others are
// where they are read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "aiter/attention/problem/error.h"
#include "aiter/attn.h"
#include "aiter/runtime/abi.h"

namespace AITER_ATTN_NAMESPACE::runtime {

template <>
struct AbiStruct<attn_problem> {
  static constexpr const char* kName = "attn_problem";
  static constexpr size_t kLeast = 96;
};
template <>
struct AbiStruct<attn_kvcache> {
  static constexpr const char* kName = "attn_kvcache";
  static constexpr size_t kLeast = 64;
};
static_assert(sizeof(attn_tensor) == 32, "frozen");

}  // namespace AITER_ATTN_NAMESPACE::runtime

namespace AITER_ATTN_NAMESPACE::attention {

using runtime::read_struct;

template <typename Args>
void require_zero(const char* field, uint32_t value) {
  if (value == 0) return;
  fail(Status::kAbiMismatch, runtime::AbiStruct<Args>::kName, ".", field, " is ", value,
       ", but must be 0: zero the struct before you fill it in");
}

}  // namespace AITER_ATTN_NAMESPACE::attention
