// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The calls that AITER's forward kernels serve (kernels/aiter_asm): those for which AITER takes
// them, but for ones that they get wrong.
#pragma once

#include <cstdint>

#include "aiter/attention/dispatch.h"
#include "aiter/attention/problem/problem.h"
#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::attention {

// Why they do not serve a problem, as the end of a sentence about them; NULL: they do.
const char* why_not_asm(const Problem& problem);

// Why they serve it only where they are asked for by name; NULL: always. For those that they serve.
const char* why_asm_by_name(const Problem& problem);

// As Pass::hazards.
uint32_t asm_hazards(const Request& request, const kernels::Row& row);

}  // namespace AITER_ATTN_NAMESPACE::attention
