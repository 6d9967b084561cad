// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The gradient of a bias, and the dimensions that it is summed over.
#pragma once

#include <cstdint>

#include "aiter/attention/problem/problem.h"
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

}  // namespace AITER_ATTN_NAMESPACE::attention
