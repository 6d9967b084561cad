// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// attn_bwd: the gradients of q, k, v and a bias.
#pragma once

#include <cstddef>

#include "aiter/attention/problem/abi.h"
#include "aiter/attention/problem/pass.h"
#include "aiter/attn.h"

template <>
struct AITER_ATTN_NAMESPACE::runtime::AbiStruct<attn_bwd_args> {
  static constexpr const char* kName = "attn_bwd_args";
  static constexpr size_t kLeast = 296;
};

namespace AITER_ATTN_NAMESPACE::attention {

const Pass& backward_pass();
Problem read(const attn_bwd_args* given, Pointers pointers);

}  // namespace AITER_ATTN_NAMESPACE::attention
