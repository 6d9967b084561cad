// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The one list of passes: each is a room in a folder beside it, which knows the rooms below and
// none beside it.
#pragma once

#include <array>

#include "aiter/attention/passes/append/append.h"
#include "aiter/attention/passes/backward/backward.h"
#include "aiter/attention/passes/dropout_mask/dropout_mask.h"
#include "aiter/attention/passes/forward/forward.h"
#include "aiter/attention/passes/kvcache/kvcache.h"

namespace AITER_ATTN_NAMESPACE::attention {

inline std::array<const Pass*, 5> passes() {
  return {&forward_pass(), &backward_pass(), &kvcache_pass(), &append_pass(), &dropout_mask_pass()};
}

}  // namespace AITER_ATTN_NAMESPACE::attention
