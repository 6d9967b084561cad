// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The places of a cache's keys and values, by Composable Kernel's names.
#pragma once

namespace ck_tile {

enum class BlockAttentionKVCacheMemoryLayoutEnum {
  VECTORIZED_LAYOUT = 0,  // not served
  LINEAR_LAYOUT = 1,      // [pages, page_size, heads, head_size]
};

enum class BlockAttentionKVCacheLookupTableEnum {
  VLLM_BLOCK_TABLE_2D = 0,   // a row of pages for each sequence
  SGLANG_PAGE_TABLE_1D = 1,  // the pages of all sequences, one after the other
};

}  // namespace ck_tile
