// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/float16.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Format {
  const char* name;
  int mantissa_bits;
  int bias;
  float (*decode)(uint16_t);
  uint16_t (*encode)(double);
};
const Format kFp16 = {"fp16", 10, 15, fp16_to_float, fp16_from_double};
const Format kBf16 = {"bf16", 7, 127, bf16_to_float, bf16_from_double};

// The value by the formats' definition.
double definition(const Format& f, uint16_t bits) {
  const int exponent = (bits & 0x7fff) >> f.mantissa_bits;
  const int mantissa = bits & ((1 << f.mantissa_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 2 * f.bias + 1) return mantissa ? std::nan("") : sign * kInfinity;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << f.mantissa_bits), exponent - f.bias - f.mantissa_bits);
}

void check_decode_and_back(const Format& f) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double expected = definition(f, bits);
    const double actual = f.decode(bits);
    const bool same = std::isnan(expected)
                          ? std::isnan(actual)
                          : actual == expected && std::signbit(actual) == std::signbit(expected);
    const uint16_t back = f.encode(actual);
    const bool round_trip =
        std::isnan(expected) ? std::isnan(definition(f, back)) && (back & 0x8000) == (bits & 0x8000)
                             : back == bits;
    if (!same || !round_trip) {
      EXPECT_EQ(f.name, "right");
      EXPECT_EQ(bits, uint32_t{back});
      return;
    }
  }
}

// Between each two neighbours: nearest, and to even in the middle; the step beyond the greatest
// number is infinity's.
void check_rounding(const Format& f) {
  const uint16_t infinity = f.encode(kInfinity);
  EXPECT_EQ(definition(f, infinity), kInfinity);
  for (uint32_t bits = 0; bits < infinity; ++bits) {
    const double low = definition(f, bits);
    const double high =
        bits + 1 < infinity ? definition(f, bits + 1) : 2 * low - definition(f, bits - 1);
    const double middle = low + (high - low) / 2;
    const uint16_t even = bits % 2 ? bits + 1 : bits;
    const bool right = f.encode(middle) == even && f.encode(-middle) == (even | 0x8000) &&
                       f.encode(std::nextafter(middle, 0)) == bits &&
                       f.encode(std::nextafter(middle, kInfinity)) == bits + 1;
    if (!right) {
      EXPECT_EQ(f.name, "right");
      EXPECT_EQ(bits, 0u);
      return;
    }
  }
}

TEST(Float16Test, EveryFp16DecodesAndComesBack) { check_decode_and_back(kFp16); }
TEST(Float16Test, EveryBf16DecodesAndComesBack) { check_decode_and_back(kBf16); }
TEST(Float16Test, EveryFp16StepRoundsToNearestEven) { check_rounding(kFp16); }
TEST(Float16Test, EveryBf16StepRoundsToNearestEven) { check_rounding(kBf16); }

TEST(Float16Test, Extremes) {
  for (const Format& f : {kFp16, kBf16}) {
    EXPECT_EQ(f.encode(1e300), f.encode(kInfinity));
    EXPECT_EQ(f.encode(-1e300), f.encode(-kInfinity));
    EXPECT_EQ(f.encode(5e-324), 0);
    EXPECT_EQ(f.encode(-5e-324), 0x8000);
    EXPECT_EQ(f.encode(0.0), 0);
    EXPECT_EQ(f.encode(-0.0), 0x8000);
  }
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
