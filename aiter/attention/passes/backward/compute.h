// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Backward on the CPU.
#pragma once

#include <cstdint>

#include "aiter/attention/problem/problem.h"
#include "aiter/attention/reference/scratch.h"

namespace AITER_ATTN_NAMESPACE::attention {

// Queries whose sums are kept at a time.
inline constexpr int64_t kSummedQueries = 64;

Scratch backward_scratch(const Problem& problem);

// Throw what Pass::compute does.
void compute_backward(const Problem& problem);
// dbias of a problem that has dbias_sums: summed in double and in a fixed order. The rest goes by
// key heads, which share the sums of here.
void compute_dbias_sums(const Problem& problem);

}  // namespace AITER_ATTN_NAMESPACE::attention
