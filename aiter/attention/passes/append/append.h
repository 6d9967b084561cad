// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// attn_append_kv: new keys and values behind those of a cache, rotated where that is asked for.
#pragma once

#include "aiter/attention/problem/pass.h"
#include "aiter/attention/problem/read.h"
#include "aiter/attn.h"

ATTN_PASS_ARGS(attn_append_kv_args, ATTN_APPEND_KV_ARGS_FIELDS, 216)

namespace AITER_ATTN_NAMESPACE::attention {

const Pass& append_pass();
Problem read(const attn_append_kv_args* given, Pointers pointers);

// The append of a call goes ahead of its attention: both have the same tensors, and appended keys
// lie over nothing else that attention reads. Throws kInvalidArgument.
void validate_ahead(const Problem& append, const Problem& attention);

inline bool has_rotary(const Problem& p) { return p.rotary != ATTN_ROTARY_NONE; }

// Throws what Pass::compute does.
void compute_append(const Problem& problem);

}  // namespace AITER_ATTN_NAMESPACE::attention
