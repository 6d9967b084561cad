// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A validated problem on the GPU: selection, workspace, and the launches.
#pragma once

#include <cstdint>

#include "aiter/attn.h"
#include "aiter/driver/driver.h"
#include "aiter/loader.h"
#include "aiter/problem.h"

namespace aiter_attn {

// Queue the work of args on args.problem.stream and return. Throw ATTN_ERROR_UNSUPPORTED where no
// instance serves, and what the driver and the store throw; then some of the work may have been
// queued, and the outputs are undefined.
void launch_fwd(attn_fwd_args args, Mode mode, Driver& driver, Loader& loader);
void launch_bwd(attn_bwd_args args, Mode mode, Driver& driver, Loader& loader);

// Bytes of workspace that launch_bwd uses. Throws ATTN_ERROR_INVALID_ARGUMENT where they do not fit
// into 64 bits.
uint64_t bwd_workspace_size(const attn_bwd_args& args, Mode mode);

}  // namespace aiter_attn
