// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Appending on the CPU.
#pragma once

#include "aiter/attention/problem/pass.h"
#include "aiter/attention/problem/problem.h"

namespace AITER_ATTN_NAMESPACE::attention {

inline bool has_rotary(const Problem& p) { return p.rotary != ATTN_ROTARY_NONE; }

// Throws what Pass::compute does.
void compute_append(const Problem& problem);

}  // namespace AITER_ATTN_NAMESPACE::attention
