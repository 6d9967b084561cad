// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The memory that the reference computes in.
#pragma once

#include "aiter/attention/problem.h"

namespace AITER_ATTN_NAMESPACE::attention {

// Bytes that one piece of the problem's work takes: the keys of a head, in double.
double scratch_bytes(const Problem& problem);

// Throws Status::kOutOfMemory, naming the sizes, where one piece takes more than this machine has.
// To ask the system would not do: it promises more than it has, and ends the process later.
void require_scratch(const Problem& problem);

// Likewise, once the system has refused memory.
[[noreturn]] void out_of_scratch(const Problem& problem);

}  // namespace AITER_ATTN_NAMESPACE::attention
