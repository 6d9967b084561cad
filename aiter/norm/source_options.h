// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// What the norms' kernels are made of, for runtime::SourceKernels.
#pragma once

#include "aiter/runtime/rtc/source_kernels.h"
#include "kernels/code_object/ahead_of_time.h"

namespace AITER_ATTN_NAMESPACE::norm {

// The sources and flags of all, and those that are built in. When to compile, by what and what to
// keep is left to the caller.
runtime::SourceKernelsOptions source_options(const kernels::AheadOfTimeKernels& built_in);

}  // namespace AITER_ATTN_NAMESPACE::norm
