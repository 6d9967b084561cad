// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The structs of aiter/attn.h, as the struct_size protocol reads them.
#pragma once

#include <cstddef>

#include "aiter/attn.h"
#include "aiter/runtime/abi.h"

namespace AITER_ATTN_NAMESPACE::runtime {

template <>
struct AbiStruct<attn_problem> {
  static constexpr const char* kName = "attn_problem";
  static constexpr size_t kLeast = 96;
};
template <>
struct AbiStruct<attn_fwd_args> {
  static constexpr const char* kName = "attn_fwd_args";
  static constexpr size_t kLeast = 152;
};
template <>
struct AbiStruct<attn_bwd_args> {
  static constexpr const char* kName = "attn_bwd_args";
  static constexpr size_t kLeast = 296;
};
template <>
struct AbiStruct<attn_dropout_mask_args> {
  static constexpr const char* kName = "attn_dropout_mask_args";
  static constexpr size_t kLeast = 24;
};
template <>
struct AbiStruct<attn_kvcache> {
  static constexpr const char* kName = "attn_kvcache";
  static constexpr size_t kLeast = 64;
};
template <>
struct AbiStruct<attn_kvcache_fwd_args> {
  static constexpr const char* kName = "attn_kvcache_fwd_args";
  static constexpr size_t kLeast = 200;
};
template <>
struct AbiStruct<attn_append_kv_args> {
  static constexpr const char* kName = "attn_append_kv_args";
  static constexpr size_t kLeast = 216;
};
template <>
struct AbiStruct<attn_kernel_info_t> {
  static constexpr const char* kName = "attn_kernel_info_t";
  static constexpr size_t kLeast = 120;
};
static_assert(sizeof(attn_tensor) == 32, "frozen");

}  // namespace AITER_ATTN_NAMESPACE::runtime
