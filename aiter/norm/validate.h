// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A caller's args, checked: values, layouts, and overlaps in memory.
#pragma once

#include "aiter/norm/problem.h"

namespace AITER_ATTN_NAMESPACE::norm {

// Throw Status::kInvalidArgument, kUnsupported or kAbiMismatch, with a message that names the
// field, its value, the allowed ones and, where it is not plain, the next step.
NormForward validated(const attn_norm_fwd_args* given);
NormBackward validated(const attn_norm_bwd_args* given);
SoftmaxForward validated(const attn_softmax_fwd_args* given);
SoftmaxBackward validated(const attn_softmax_bwd_args* given);

}  // namespace AITER_ATTN_NAMESPACE::norm
