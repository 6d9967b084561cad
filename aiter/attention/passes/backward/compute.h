// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Backward on the CPU, and the extents of the gradient of a bias.
#pragma once

#include <cstdint>

#include "aiter/attention/problem/problem.h"
#include "aiter/attention/reference/scratch.h"
#include "aiter/attn.h"

namespace AITER_ATTN_NAMESPACE::attention {

inline bool sums_dbias(const Problem& p, attn_dbias_sum what) { return p.dbias_sums & what; }

// Of dbias: one entry along each dimension that it is summed over.
inline Extents dbias_extents(const Problem& p) {
  Extents e = score_extents(p);
  if (sums_dbias(p, ATTN_DBIAS_SUM_BATCH)) e.batch = 1;
  if (sums_dbias(p, ATTN_DBIAS_SUM_HEADS)) e.heads = 1;
  if (sums_dbias(p, ATTN_DBIAS_SUM_QUERIES)) e.seq = e.longest = 1;
  return e;
}

// Queries whose sums are kept at a time.
inline constexpr int64_t kSummedQueries = 64;

Scratch backward_scratch(const Problem& problem);

// Throw what Pass::compute does.
void compute_backward(const Problem& problem);
// dbias of a problem that has dbias_sums: summed in double and in a fixed order. The rest goes by
// key heads, which share the sums of here.
void compute_dbias_sums(const Problem& problem);
// dsink, summed alike.
void compute_dsink(const Problem& problem);

}  // namespace AITER_ATTN_NAMESPACE::attention
