// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/float8.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

struct Layout {
  int fraction_bits;
  int bias;
  int largest;  // the bits of the largest number
  bool fnuz;
};

Layout layout_of(Fp8 format) {
  switch (format) {
    case Fp8::kE4m3:
      return {3, 7, 0x7e, false};
    case Fp8::kE4m3Fnuz:
      return {3, 8, 0x7f, true};
    case Fp8::kE5m2:
      return {2, 15, 0x7b, false};
  }
  return {};
}

}  // namespace

float fp8_to_float(uint8_t bits, Fp8 format) {
  const Layout f = layout_of(format);
  const int magnitude = bits & 0x7f;
  float value;
  if (f.fnuz ? bits == 0x80 : magnitude > f.largest) {
    const bool infinite = format == Fp8::kE5m2 && magnitude == f.largest + 1;
    value =
        infinite ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  } else {
    const int exponent = magnitude >> f.fraction_bits;
    const int one = exponent != 0 ? 1 << f.fraction_bits : 0;
    const int significand = (magnitude & ((1 << f.fraction_bits) - 1)) + one;
    value = std::ldexp(static_cast<float>(significand),
                       std::max(exponent, 1) - f.bias - f.fraction_bits);
  }
  return bits & 0x80 ? -value : value;
}

float fp8_largest(Fp8 format) {
  return fp8_to_float(static_cast<uint8_t>(layout_of(format).largest), format);
}

uint8_t fp8_from_double(double value, Fp8 format) {
  const Layout f = layout_of(format);
  const int sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return static_cast<uint8_t>(f.fnuz ? 0x80 : sign | 0x7f);
  const double magnitude = std::fmin(std::fabs(value), 1e6);  // more than any has
  const int least = 1 - f.bias;
  const int exponent = magnitude == 0 ? least : std::max(std::ilogb(magnitude), least);
  // The leading 1 of a normal number raises the exponent field by one.
  const double significand = std::nearbyint(std::ldexp(magnitude, f.fraction_bits - exponent));
  const int bits = ((exponent - least) << f.fraction_bits) + static_cast<int>(significand);
  if (f.fnuz && bits == 0) return 0;
  return static_cast<uint8_t>(sign | std::min(bits, f.largest));
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
