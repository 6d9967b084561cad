// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Attention on the CPU: the reference that every kernel is held against, and what serves arrays in
// host memory. Sums and exponentials are in double; only inputs and outputs have the problem's
// type.
#pragma once

#include <cstdint>

#include "aiter/attention/problem.h"
#include "aiter/attn.h"

namespace AITER_ATTN_NAMESPACE::attention {

// Compute a validated problem of their direction. Throw Status::kOutOfMemory, naming the sizes, and
// Status::kInterrupted where the calling thread's interrupt (interrupt.h) asks to stop.
void reference_fwd(const Problem& problem);
void reference_bwd(const Problem& problem);
void reference_append_kv(const Problem& problem);
void reference_dropout_mask(const Problem& problem);

}  // namespace AITER_ATTN_NAMESPACE::attention
