// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// From a caller's structs to a problem whose numbers, lengths and pages every other part can rely
// on; validate_memory.h looks at the rest. Refuses what no build of the library would accept: a
// message names the field, its value, what is allowed and, where that is not obvious, the next
// step.
#pragma once

#include <cstdint>

#include "aiter/attention/problem.h"
#include "aiter/attn.h"

namespace AITER_ATTN_NAMESPACE::attention {

// Replaces one of p's arrays by a copy where it is read: in host memory. It stays as it is where it
// is about to be refused: NULL or misaligned.
void copy_array(Problem* p, const int32_t** array, int64_t count);

// Whether the pointers matter: they do not where only a plan is asked for.
enum class Pointers { kRequired, kIgnored };

// Throw kInvalidArgument, or kUnsupported where only the device is in the way. Pointers in args
// to other structs are not followed: their copies are passed. The result is canonical: strides of
// dimensions with one entry are those of a contiguous tensor, and a window as wide as the sequences
// is -1.
Problem validated(const attn_fwd_args& args, const attn_problem& problem, Pointers pointers);
Problem validated(const attn_bwd_args& args, const attn_problem& problem, Pointers pointers);
Problem validated(const attn_kvcache_fwd_args& args, const attn_problem& problem,
                  const attn_kvcache& cache, Pointers pointers);
Problem validated(const attn_append_kv_args& args, const attn_problem& problem,
                  const attn_kvcache& cache, Pointers pointers);
Problem validated(const attn_dropout_mask_args& args, const attn_problem& problem,
                  Pointers pointers);

}  // namespace AITER_ATTN_NAMESPACE::attention
