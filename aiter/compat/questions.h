// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Questions about calls of one pin, whose structs are in the functions' names.
#pragma once

#include <cstddef>

#include "mha_bwd.h"
#include "mha_fwd.h"

namespace AITER_ATTN_NAMESPACE::compat {

// Whether a kernel serves the call. Its pointers may be missing.
bool is_served(const ::aiter::mha_fwd_args& args);

// The most bytes that the call asks for; 0 and the reason on stderr where nothing serves it. Its
// pointers may be missing.
size_t workspace_size(const ::aiter::mha_bwd_args& args);

}  // namespace AITER_ATTN_NAMESPACE::compat
