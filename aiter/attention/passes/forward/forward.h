// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// attn_fwd: o and lse.
#pragma once

#include <cstddef>

#include "aiter/attention/problem/abi.h"
#include "aiter/attention/problem/pass.h"
#include "aiter/attn.h"

template <>
struct AITER_ATTN_NAMESPACE::runtime::AbiStruct<attn_fwd_args> {
  static constexpr const char* kName = "attn_fwd_args";
  static constexpr size_t kLeast = 152;
};

namespace AITER_ATTN_NAMESPACE::attention {

const Pass& forward_pass();
Problem read(const attn_fwd_args* given, Pointers pointers);

}  // namespace AITER_ATTN_NAMESPACE::attention
