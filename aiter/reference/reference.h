// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Attention on the CPU: the reference that every kernel is held against, and what serves arrays in
// host memory. Sums and exponentials are in double; only inputs and outputs have the problem's
// type.
#pragma once

#include "aiter/attn.h"
#include "aiter/problem.h"

namespace aiter_attn {

// Compute validated args. May throw std::bad_alloc.
void reference_fwd(const attn_fwd_args& args, Mode mode);
void reference_bwd(const attn_bwd_args& args, Mode mode);

}  // namespace aiter_attn
