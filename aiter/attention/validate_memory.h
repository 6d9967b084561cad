// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Validation's second half: tensors, lse and workspace are there, aligned, addressable, and no
// output shares a byte with anything else.
#pragma once

#include <cstdint>

#include "aiter/attention/validate.h"

namespace AITER_ATTN_NAMESPACE::attention {

// The problem is validated, and its most_parts is that of this build. Throws kInvalidArgument.
void validate_memory(const Problem& problem, Pointers pointers);

// Throws kInvalidArgument where the two do not go together: `append` changes the cache ahead of
// `attention`, in one call, so what it writes is nothing else that attention reads.
void validate_appended(const Problem& append, const Problem& attention);

}  // namespace AITER_ATTN_NAMESPACE::attention
