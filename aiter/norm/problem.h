// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Calls as the library sees them. validate.h makes them of a caller's structs; only calls that have
// passed there reach any other part.
#pragma once

#include <cstddef>
#include <cstdint>

#include "aiter/norm.h"
#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::norm {

using runtime::concat;
using runtime::fail;
using runtime::refuse;
using runtime::Status;

// The args with their problem in place of the caller's pointer to it.
struct NormForward : attn_norm_fwd_args {
  attn_norm_problem p;
};
struct NormBackward : attn_norm_bwd_args {
  attn_norm_problem p;
};
struct SoftmaxForward : attn_softmax_fwd_args {
  attn_softmax_problem p;
};
struct SoftmaxBackward : attn_softmax_bwd_args {
  attn_softmax_problem p;
};

inline bool is_fp8(int32_t dtype) {
  return dtype == ATTN_DTYPE_FP8_E4M3 || dtype == ATTN_DTYPE_FP8_E5M2;
}

inline int64_t dtype_size(int32_t dtype) {
  return dtype == ATTN_DTYPE_FP32 ? 4 : is_fp8(dtype) ? 1 : 2;
}

}  // namespace AITER_ATTN_NAMESPACE::norm
