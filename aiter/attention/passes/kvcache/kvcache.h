// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// attn_kvcache_fwd: o and lse over keys and values in a cache.
#pragma once

#include "aiter/attention/problem/pass.h"
#include "aiter/attention/problem/read.h"
#include "aiter/attn.h"

ATTN_PASS_ARGS(attn_kvcache_fwd_args, ATTN_KVCACHE_FWD_ARGS_FIELDS, 200)

namespace AITER_ATTN_NAMESPACE::attention {

const Pass& kvcache_pass();
Problem read(const attn_kvcache_fwd_args* given, Pointers pointers);

}  // namespace AITER_ATTN_NAMESPACE::attention
