// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Refuses what no build of the library would accept. A message names the field, its value, what is
// allowed and, where that is not obvious, the next step.
#pragma once

#include "aiter/attn.h"
#include "aiter/problem.h"

namespace aiter_attn {

// Whether the pointers of args matter: they do not where only a plan is asked for.
enum class Pointers { kRequired, kIgnored };

// Throw ATTN_ERROR_INVALID_ARGUMENT, or ATTN_ERROR_UNSUPPORTED where only the device is in the way.
void validate(const attn_fwd_args& args, Mode mode, Pointers pointers);
void validate(const attn_bwd_args& args, Mode mode, Pointers pointers);

}  // namespace aiter_attn
