// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Problems over caches, for tests: the keys of each sequence, wherever they lie. All that no
// sequence uses is NaN in memory, and out of range in tables.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "aiter/attn.h"
#include "tests/support/attention/problems.h"

namespace AITER_ATTN_NAMESPACE::testing {

enum class Storage {
  kInPlace,   // group mode: packed
  kPages,     // found by a block table
  kPageList,  // found one by one
};

// The layout of a CacheProblem in memory.
struct CacheShape {
  Shape shape;                        // batch and seqlen_k, the room, are taken from below
  std::vector<int32_t> lengths;       // of the keys of each sequence
  std::vector<int32_t> cu_seqlens_q;  // of group mode; empty in batch mode
  Storage storage = Storage::kInPlace;
  int32_t page_size = 4;
};

// The args point into this object, and to its problem and cache.
class CacheProblem {
 public:
  CacheProblem(const CacheShape& shape, attn_dtype dtype, uint32_t seed = 1);
  CacheProblem(const CacheProblem&) = delete;

  attn_kvcache_fwd_args args();
  void add_slopes();

  int64_t queries(int b) const;
  // Of k or v: key j of sequence b.
  double key(const Buffer& t, int b, int64_t j, int64_t h, int64_t c) const;
  // Of q or o.
  double query(const Buffer& t, int b, int64_t i, int64_t h, int64_t c) const;
  float lse_of(int b, int64_t i, int64_t h) const;

  std::vector<int32_t> lengths, cu_seqlens_q, cu_seqlens_k;
  std::vector<int32_t> batch_index, block_table, page_indptr, page_indices;
  attn_problem problem;
  attn_kvcache cache;
  Buffer q, k, v, o;
  std::vector<float> lse, slopes;

 private:
  static attn_problem problem_of(const CacheShape& shape, attn_dtype dtype);
  void place(const CacheShape& shape, uint32_t seed);
  void place_in_pages(const CacheShape& shape, uint32_t seed);

  // By sequence and key: the entry (or page) and the row in it.
  std::vector<std::vector<std::pair<int64_t, int64_t>>> places_;
};

}  // namespace AITER_ATTN_NAMESPACE::testing
