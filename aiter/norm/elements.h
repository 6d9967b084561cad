// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Elements in host memory, read and written as double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "aiter/norm/problem.h"
#include "aiter/runtime/float16.h"

namespace AITER_ATTN_NAMESPACE::norm {

// OCP fp8, rounded once, to nearest, ties to even. What is beyond the largest number becomes it.
inline uint8_t fp8_from_double(double value, int mantissa_bits, int bias, int largest) {
  const int sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return static_cast<uint8_t>(sign | 0x7f);
  const double magnitude = std::fmin(std::fabs(value), 1e6);  // more than any has
  const int least = 1 - bias;
  const int exponent = magnitude == 0 ? least : std::max(std::ilogb(magnitude), least);
  // The leading 1 of a normal number raises the exponent field by one.
  const double mantissa = std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent));
  const int bits = ((exponent - least) << mantissa_bits) + static_cast<int>(mantissa);
  return static_cast<uint8_t>(sign | std::min(bits, largest));
}

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
      static_cast<uint8_t*>(data)[i] = fp8_from_double(value, 3, 7, 0x7e);
      return;
    case ATTN_DTYPE_FP8_E5M2:
      static_cast<uint8_t*>(data)[i] = fp8_from_double(value, 2, 15, 0x7b);
      return;
    default:
      static_cast<float*>(data)[i] = static_cast<float>(value);
  }
}

}  // namespace AITER_ATTN_NAMESPACE::norm
