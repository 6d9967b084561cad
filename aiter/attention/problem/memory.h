// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Validation's second half, of any pass: tensors, lse and workspace are there, aligned,
// addressable, and no output shares a byte with anything else. Throws kInvalidArgument.
#pragma once

#include "aiter/attention/problem/pass.h"
#include "aiter/attention/problem/problem.h"

namespace AITER_ATTN_NAMESPACE::attention {

// The problem is validated, and its most_parts is that of this build.
void validate_memory(const Problem& problem, Pointers pointers);

// A pass ahead of another of the same call writes to nothing but the same tensors there.
void validate_apart(const Problem& first, const Problem& next);

}  // namespace AITER_ATTN_NAMESPACE::attention
