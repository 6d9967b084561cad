// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/float16.h"

#include <algorithm>
#include <cmath>

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

// A 16-bit format with a sign, kExponentBits of biased exponent and the rest mantissa.
template <int kExponentBits>
uint16_t encode(double value) {
  constexpr int kMantissaBits = 15 - kExponentBits;
  constexpr int kMinExponent = 2 - (1 << (kExponentBits - 1));  // of normal numbers
  constexpr uint16_t kInfinity = ((1 << kExponentBits) - 1) << kMantissaBits;
  constexpr uint16_t kQuiet = 1 << (kMantissaBits - 1);

  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return sign | kInfinity | kQuiet;
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return sign | kInfinity;
  if (magnitude == 0) return sign;

  // In units of the last place the magnitude is `whole` and a remainder. Subnormal numbers have the
  // unit of the least normal exponent and no implicit bit.
  const int exponent = std::max(std::ilogb(magnitude), kMinExponent);
  const double scaled = std::ldexp(magnitude, kMantissaBits - exponent);
  uint32_t whole = static_cast<uint32_t>(scaled);
  const double remainder = scaled - whole;
  if (remainder > 0.5 || (remainder == 0.5 && whole % 2 == 1)) ++whole;
  // The implicit bit, and a carry out of the mantissa, count up the exponent.
  if (exponent - kMinExponent >= (1 << kExponentBits) - 1) return sign | kInfinity;
  const uint32_t bits = (static_cast<uint32_t>(exponent - kMinExponent) << kMantissaBits) + whole;
  return sign | static_cast<uint16_t>(std::min<uint32_t>(bits, kInfinity));
}

}  // namespace

namespace float16 {
uint16_t fp16_from_any_double(double value) { return encode<5>(value); }
uint16_t bf16_from_any_double(double value) { return encode<8>(value); }
}  // namespace float16

}  // namespace AITER_ATTN_NAMESPACE::runtime
