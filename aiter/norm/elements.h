// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Elements in host memory, read and written as double.
#pragma once

#include <cstdint>

#include "aiter/norm/problem.h"
#include "aiter/runtime/float16.h"
#include "aiter/runtime/float8.h"

namespace AITER_ATTN_NAMESPACE::norm {

inline double load(const void* data, int32_t dtype, int64_t i) {
  switch (dtype) {
    case ATTN_DTYPE_FP16:
      return runtime::fp16_to_float(static_cast<const uint16_t*>(data)[i]);
    case ATTN_DTYPE_BF16:
      return runtime::bf16_to_float(static_cast<const uint16_t*>(data)[i]);
    default:
      return static_cast<const float*>(data)[i];
  }
}

inline void store(void* data, int32_t dtype, int64_t i, double value) {
  switch (dtype) {
    case ATTN_DTYPE_FP16:
      static_cast<uint16_t*>(data)[i] = runtime::fp16_from_double(value);
      return;
    case ATTN_DTYPE_BF16:
      static_cast<uint16_t*>(data)[i] = runtime::bf16_from_double(value);
      return;
    case ATTN_DTYPE_FP8_E4M3:
      static_cast<uint8_t*>(data)[i] = runtime::fp8_from_double(value, runtime::Fp8::kE4m3);
      return;
    case ATTN_DTYPE_FP8_E5M2:
      static_cast<uint8_t*>(data)[i] = runtime::fp8_from_double(value, runtime::Fp8::kE5m2);
      return;
    default:
      static_cast<float*>(data)[i] = static_cast<float>(value);
  }
}

}  // namespace AITER_ATTN_NAMESPACE::norm
