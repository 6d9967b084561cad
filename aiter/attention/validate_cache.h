// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Validation of a cache: what says where keys lie is there, and in host memory points to keys that
// are there.
#pragma once

#include "aiter/attention/validate.h"

namespace AITER_ATTN_NAMESPACE::attention {

// The numbers of the problem itself are valid. Arrays that are read become copies. Throws
// kInvalidArgument.
void validate_cache(Problem* problem, Pointers pointers);

}  // namespace AITER_ATTN_NAMESPACE::attention
