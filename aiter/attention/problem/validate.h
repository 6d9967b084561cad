// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Validation that passes share: a problem's numbers, lengths and cache; memory.h looks at the rest.
// It refuses calls that no build of the library would accept: a message names the field, its value,
// the allowed ones and, where that is not obvious, the next step. All throw kInvalidArgument, or
// kUnsupported where only the device is in the way.
#pragma once

#include <cstdint>

#include "aiter/attention/problem/pass.h"
#include "aiter/attention/problem/problem.h"
#include "aiter/attn.h"

namespace AITER_ATTN_NAMESPACE::attention {

// Replaces one of p's arrays by a copy where it is read: in host memory. It stays as it is where it
// is about to be refused: NULL or misaligned.
void copy_array(Problem* p, const int32_t** array, int64_t count);

// All that attn_problem has; first, of a problem whose own fields are set.
void validate_problem(Problem* problem, Pointers pointers);

// The args have the bias that the problem names.
void validate_bias(const Problem& problem);

// Of every pass but forward.
void refuse_fp8(const Problem& problem);

void validate_min_seqlen_q(const Problem& problem);

// Of a cache: it says where keys lie (the numbers of the problem are valid); and in host memory
// that points to keys that are there. Arrays that are read become copies.
void validate_places(const Problem& problem);
void validate_arrays(Problem* problem, Pointers pointers);

// Last. Kernels narrow strides to 32 bits even where they mean nothing, and some size their bounds
// checks by them; they add to windows in 32 bits.
void make_canonical(Problem* problem);

}  // namespace AITER_ATTN_NAMESPACE::attention
