// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Validation of a cache: the arrays that say where keys lie are there, and in host memory point to
// keys that are there. Throws kInvalidArgument.
#pragma once

#include "aiter/attention/problem/pass.h"
#include "aiter/attention/problem/problem.h"

namespace AITER_ATTN_NAMESPACE::attention {

// The numbers of the problem itself are valid.
void validate_places(const Problem& problem);

// The places are valid. Arrays that are read become copies.
void validate_arrays(Problem* problem, Pointers pointers);

}  // namespace AITER_ATTN_NAMESPACE::attention
