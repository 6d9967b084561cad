// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// attn_fwd: o and lse.
#pragma once

#include "aiter/attention/problem/pass.h"
#include "aiter/attention/problem/read.h"
#include "aiter/attn.h"

ATTN_PASS_ARGS(attn_fwd_args, ATTN_FWD_ARGS_FIELDS, 152)

namespace AITER_ATTN_NAMESPACE::attention {

const Pass& forward_pass();
Problem read(const attn_fwd_args* given, Pointers pointers);

}  // namespace AITER_ATTN_NAMESPACE::attention
