// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// attn_dropout_mask: which weights dropout keeps.
#pragma once

#include "aiter/attention/problem/pass.h"
#include "aiter/attention/problem/read.h"
#include "aiter/attn.h"

ATTN_PASS_ARGS(attn_dropout_mask_args, ATTN_DROPOUT_MASK_ARGS_FIELDS, 24)

namespace AITER_ATTN_NAMESPACE::attention {

const Pass& dropout_mask_pass();
Problem read(const attn_dropout_mask_args* given, Pointers pointers);

}  // namespace AITER_ATTN_NAMESPACE::attention
