// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Rows of a tensor in host memory, read and written as double.
#pragma once

#include <algorithm>
#include <cstdint>

#include "aiter/attention/reference/matrix.h"
#include "aiter/attention/reference/simd.h"
#include "aiter/attn.h"
#include "aiter/runtime/float16.h"
#include "aiter/runtime/float8.h"

namespace AITER_ATTN_NAMESPACE::attention {

inline runtime::Fp8 fp8_format(int32_t dtype) {
  return dtype == ATTN_DTYPE_FP8_E4M3 ? runtime::Fp8::kE4m3 : runtime::Fp8::kE4m3Fnuz;
}

// count elements from element `offset` on, into `row`.
inline void load_row(const attn_tensor& t, int32_t dtype, int64_t offset, int64_t count,
                     double* row) {
  int64_t done = 0;
  const auto load = [&](const auto* from, auto&& convert) {
    for (int64_t i = done; i < count; ++i) row[i] = convert(from[offset + i]);
  };
  if (dtype == ATTN_DTYPE_FP16) {
    load(static_cast<const uint16_t*>(t.data),
         [](uint16_t x) { return runtime::fp16_to_float(x); });
  } else if (dtype == ATTN_DTYPE_BF16) {
    const auto* const from = static_cast<const uint16_t*>(t.data);
    done = loops().from_bf16(from + offset, count, row);
    load(from, [](uint16_t x) { return runtime::bf16_to_float(x); });
  } else if (dtype == ATTN_DTYPE_FP32) {
    load(static_cast<const float*>(t.data), [](float x) { return x; });
  } else {
    load(static_cast<const uint8_t*>(t.data),
         [dtype](uint8_t x) { return runtime::fp8_to_float(x, fp8_format(dtype)); });
  }
}

// The same, into a column of panels, which begins at `to`.
inline void load_column(const attn_tensor& t, int32_t dtype, int64_t offset, int64_t count,
                        double* to) {
  constexpr int64_t kPart = 64;
  double part[kPart];
  for (int64_t first = 0; first < count; first += kPart) {
    const int64_t size = std::min(kPart, count - first);
    load_row(t, dtype, offset + first, size, part);
    for (int64_t i = 0; i < size; ++i) to[(first + i) * kPanel] = part[i];
  }
}

// The same, into a row of panels.
inline void load_row(const attn_tensor& t, int32_t dtype, int64_t offset, int64_t count,
                     Panels* panels, int64_t row) {
  for (int64_t column = 0; column < count; column += kPanel) {
    load_row(t, dtype, offset + column, std::min(kPanel, count - column), panels->at(row, column));
  }
}

inline void store_row(const attn_tensor& t, int32_t dtype, int64_t offset, int64_t count,
                      const double* row) {
  auto* byte = static_cast<uint8_t*>(t.data) + offset;
  auto* half = static_cast<uint16_t*>(t.data) + offset;
  auto* single = static_cast<float*>(t.data) + offset;
  const bool is_bf16 = dtype == ATTN_DTYPE_BF16;
  for (int64_t i = is_bf16 ? loops().to_bf16(row, count, half) : 0; i < count; ++i) {
    if (dtype == ATTN_DTYPE_FP16) {
      half[i] = runtime::fp16_from_double(row[i]);
    } else if (is_bf16) {
      half[i] = runtime::bf16_from_double(row[i]);
    } else if (dtype == ATTN_DTYPE_FP32) {
      single[i] = static_cast<float>(row[i]);
    } else {
      byte[i] = runtime::fp8_from_double(row[i], fp8_format(dtype));
    }
  }
}

}  // namespace AITER_ATTN_NAMESPACE::attention
