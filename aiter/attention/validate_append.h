// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Validation of what is appended to a cache: there is room for it, rotation has tables that reach
// as far, and in host memory no two sequences are written to one place.
#pragma once

#include "aiter/attention/validate.h"

namespace AITER_ATTN_NAMESPACE::attention {

// Throw kInvalidArgument. The first comes before all that depends on the mode.
void validate_append_mode(const Problem& problem);

// The numbers of the problem itself are valid.
void validate_append(const Problem& problem, Pointers pointers);

// The cache is valid, too.
void validate_appended_places(const Problem& problem, Pointers pointers);

}  // namespace AITER_ATTN_NAMESPACE::attention
