// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Rows of a tensor in host memory, read and written as double.
#pragma once

#include <cstdint>

#include "aiter/attn.h"
#include "aiter/runtime/float16.h"
#include "aiter/runtime/float8.h"

namespace AITER_ATTN_NAMESPACE::attention {

inline runtime::Fp8 fp8_format(int32_t dtype) {
  return dtype == ATTN_DTYPE_FP8_E4M3 ? runtime::Fp8::kE4m3 : runtime::Fp8::kE4m3Fnuz;
}

// count elements from element `offset` on, into or out of `row`, `step` doubles apart.
inline void load_row(const attn_tensor& t, int32_t dtype, int64_t offset, int64_t count,
                     double* row, int64_t step = 1) {
  const auto* byte = static_cast<const uint8_t*>(t.data) + offset;
  const auto* half = static_cast<const uint16_t*>(t.data) + offset;
  const auto* single = static_cast<const float*>(t.data) + offset;
  for (int64_t i = 0; i < count; ++i) {
    row[i * step] = dtype == ATTN_DTYPE_FP16   ? runtime::fp16_to_float(half[i])
                    : dtype == ATTN_DTYPE_BF16 ? runtime::bf16_to_float(half[i])
                    : dtype == ATTN_DTYPE_FP32 ? single[i]
                                               : runtime::fp8_to_float(byte[i], fp8_format(dtype));
  }
}

inline void store_row(const attn_tensor& t, int32_t dtype, int64_t offset, int64_t count,
                      const double* row) {
  auto* byte = static_cast<uint8_t*>(t.data) + offset;
  auto* half = static_cast<uint16_t*>(t.data) + offset;
  auto* single = static_cast<float*>(t.data) + offset;
  for (int64_t i = 0; i < count; ++i) {
    if (dtype == ATTN_DTYPE_FP16) {
      half[i] = runtime::fp16_from_double(row[i]);
    } else if (dtype == ATTN_DTYPE_BF16) {
      half[i] = runtime::bf16_from_double(row[i]);
    } else if (dtype == ATTN_DTYPE_FP32) {
      single[i] = static_cast<float>(row[i]);
    } else {
      byte[i] = runtime::fp8_from_double(row[i], fp8_format(dtype));
    }
  }
}

}  // namespace AITER_ATTN_NAMESPACE::attention
