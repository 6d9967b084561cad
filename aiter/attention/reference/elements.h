// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Rows of a tensor in host memory, read and written as double.
#pragma once

#include <cstdint>

#include "aiter/attn.h"
#include "aiter/runtime/float16.h"

namespace AITER_ATTN_NAMESPACE::attention {

// count elements from element `offset` on, into or out of `row`, `step` doubles apart.
inline void load_row(const attn_tensor& t, int32_t dtype, int64_t offset, int64_t count,
                     double* row, int64_t step = 1) {
  const auto* half = static_cast<const uint16_t*>(t.data) + offset;
  const auto* single = static_cast<const float*>(t.data) + offset;
  for (int64_t i = 0; i < count; ++i) {
    row[i * step] = dtype == ATTN_DTYPE_FP16   ? runtime::fp16_to_float(half[i])
                    : dtype == ATTN_DTYPE_BF16 ? runtime::bf16_to_float(half[i])
                                               : single[i];
  }
}

inline void store_row(const attn_tensor& t, int32_t dtype, int64_t offset, int64_t count,
                      const double* row) {
  auto* half = static_cast<uint16_t*>(t.data) + offset;
  auto* single = static_cast<float*>(t.data) + offset;
  for (int64_t i = 0; i < count; ++i) {
    if (dtype == ATTN_DTYPE_FP16) {
      half[i] = runtime::fp16_from_double(row[i]);
    } else if (dtype == ATTN_DTYPE_BF16) {
      half[i] = runtime::bf16_from_double(row[i]);
    } else {
      single[i] = static_cast<float>(row[i]);
    }
  }
}

}  // namespace AITER_ATTN_NAMESPACE::attention
