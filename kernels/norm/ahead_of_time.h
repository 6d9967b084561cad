// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The norm and softmax kernels that are built in: --//kernels/norm/ahead_of_time:archs.
#pragma once

#include "kernels/code_object/ahead_of_time.h"

namespace AITER_ATTN_NAMESPACE::kernels {

AheadOfTimeKernels row_kernels();

}  // namespace AITER_ATTN_NAMESPACE::kernels
