// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The gradient of a bias that serves several scores: summed over them, in double and in a fixed
// order. The rest of backward (backward.cc) goes by key heads, which share what is summed here, so
// this is a pass of its own.
#pragma once

#include "aiter/attention/problem.h"

namespace AITER_ATTN_NAMESPACE::attention {

// Queries whose sums are kept at a time.
inline constexpr int64_t kSummedQueries = 64;

// dbias of a problem that has dbias_sums. Throws what reference_bwd does.
void reference_dbias_sums(const Problem& problem);

}  // namespace AITER_ATTN_NAMESPACE::attention
