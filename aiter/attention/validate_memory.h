// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Validation's second half: tensors, lse and workspace are there, aligned, addressable, and no
// output shares a byte with anything else.
#pragma once

#include <cstdint>

#include "aiter/attention/validate.h"

namespace AITER_ATTN_NAMESPACE::attention {

// The problem's numbers are valid. Throws kInvalidArgument.
void validate_memory(const Problem& problem, Pointers pointers);

// Likewise of attn_dropout_mask.
void validate_kept(const Problem& problem);

}  // namespace AITER_ATTN_NAMESPACE::attention
