// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The calls that AITER's backward kernels serve (kernels/aiter_asm): those for which AITER takes
// the ones that sum dq in float32, but for calls that they get wrong.
#pragma once

#include <cstdint>

#include "aiter/attention/dispatch.h"
#include "aiter/attention/problem/problem.h"
#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::attention {

// Adds to a request which of them it needs, or why they do not serve it.
void ask_asm_backward(const Problem& problem, Request* request);

// Whether kernels of a kind are AITER's, which add to dq by head.
bool is_asm_backward(kernels::Kind main);

// As Pass::hazards.
uint32_t asm_backward_hazards(const Request& request, const kernels::Row& row);

// Their plan, with Composable Kernel's delta before and its conversion of dq after.
Plan plan_asm_backward(const kernels::LaunchTable& table, const Request& request);

}  // namespace AITER_ATTN_NAMESPACE::attention
