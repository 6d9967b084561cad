// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The calls that AITER's forward kernels serve (kernels/aiter_asm): those for which AITER takes
// them, but for ones that they get wrong.
#pragma once

#include "aiter/attention/problem/problem.h"

namespace AITER_ATTN_NAMESPACE::attention {

// Why they do not serve a problem, as the end of a sentence about them; NULL: they do.
const char* why_not_asm(const Problem& problem);

// Why they serve it only where they are asked for by name; NULL: always. For those that they serve.
const char* why_asm_by_name(const Problem& problem);

}  // namespace AITER_ATTN_NAMESPACE::attention
