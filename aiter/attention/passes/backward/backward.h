// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// attn_bwd: the gradients of q, k, v and a bias.
#pragma once

#include "aiter/attention/problem/pass.h"
#include "aiter/attention/problem/read.h"
#include "aiter/attn.h"

ATTN_PASS_ARGS(attn_bwd_args, ATTN_BWD_ARGS_FIELDS, 296)

namespace AITER_ATTN_NAMESPACE::attention {

const Pass& backward_pass();
Problem read(const attn_bwd_args* given, Pointers pointers);

}  // namespace AITER_ATTN_NAMESPACE::attention
