// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The number of workgroups that share the keys of a tile of queries. With few queries, as in
// decoding, there are fewer tiles than a GPU has room for; split keys fill it, at the cost of a
// second kernel and of partial results in memory.
#pragma once

#include <cstdint>

namespace AITER_ATTN_NAMESPACE::attention {

// workgroups: without splits. tiles_of_keys: of the longest sequence. docs/kvcache.md has the rule.
int32_t choose_splits(int64_t workgroups, int64_t tiles_of_keys, int32_t compute_units);

}  // namespace AITER_ATTN_NAMESPACE::attention
