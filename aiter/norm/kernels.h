// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The norms' kernels: sources that are in the library, compiled with it or when they are first
// used.
#pragma once

#include "aiter/runtime/source_kernels.h"
#include "kernels/code_object/ahead_of_time.h"

namespace AITER_ATTN_NAMESPACE::norm {

// The sources and how they are compiled, with the library or by it.
runtime::SourceKernelsOptions options_of(const kernels::AheadOfTimeKernels& built_in);

// Those of this build. Throws Status::kInvalidArgument for a wrong AITER_ATTN_RTC.
const runtime::SourceKernels& norm_kernels();

}  // namespace AITER_ATTN_NAMESPACE::norm
