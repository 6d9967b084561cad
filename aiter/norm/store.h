// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The norms' kernels: sources that are in the library, compiled when they are first used.
#pragma once

#include "aiter/runtime/rtc/source_kernels.h"
#include "kernels/code_object/ahead_of_time.h"

namespace AITER_ATTN_NAMESPACE::norm {

// The sources, how they are compiled, and what is built in; not who compiles, nor what is kept.
runtime::SourceKernelsOptions options_of(const kernels::AheadOfTimeKernels& built_in);

// Throws Status::kInvalidArgument for a wrong AITER_ATTN_RTC, _CACHE_DIR or _CACHE_MAX_SIZE.
runtime::SourceKernels& norm_kernels();

}  // namespace AITER_ATTN_NAMESPACE::norm
