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

inline bool has_keys(const Problem& p) {
  const Extents e = cache_extents(p, p.head_size_qk);
  return p.seqlen_k != 0 && e.batch != 0 && e.seq != 0;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
