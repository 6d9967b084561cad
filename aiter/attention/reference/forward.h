// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Attention on the CPU, of queries and keys that may lie in a cache. Sums and exponentials are in
// double; only inputs and outputs have the problem's type.
#pragma once

#include "aiter/attention/problem/problem.h"

namespace AITER_ATTN_NAMESPACE::attention {

// o and lse of a validated problem. Throws what Pass::compute does.
void reference_fwd(const Problem& problem);

}  // namespace AITER_ATTN_NAMESPACE::attention
