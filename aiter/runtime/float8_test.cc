// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/float8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// By the formats' definitions.
TEST(Float8, NamedNumbers) {
  EXPECT_EQ(fp8_to_float(0x38, Fp8::kE4m3), 1.0f);
  EXPECT_EQ(fp8_to_float(0x7e, Fp8::kE4m3), 448.0f);
  EXPECT_EQ(fp8_to_float(0x01, Fp8::kE4m3), 0x1p-9f);
  EXPECT_EQ(fp8_to_float(0x07, Fp8::kE4m3), 7 * 0x1p-9f);
  EXPECT_TRUE(std::signbit(fp8_to_float(0x80, Fp8::kE4m3)));
  EXPECT_TRUE(std::isnan(fp8_to_float(0x7f, Fp8::kE4m3)));
  EXPECT_TRUE(std::isnan(fp8_to_float(0xff, Fp8::kE4m3)));

  EXPECT_EQ(fp8_to_float(0x40, Fp8::kE4m3Fnuz), 1.0f);
  EXPECT_EQ(fp8_to_float(0x7f, Fp8::kE4m3Fnuz), 240.0f);
  EXPECT_EQ(fp8_to_float(0xff, Fp8::kE4m3Fnuz), -240.0f);
  EXPECT_EQ(fp8_to_float(0x01, Fp8::kE4m3Fnuz), 0x1p-10f);
  EXPECT_TRUE(std::isnan(fp8_to_float(0x80, Fp8::kE4m3Fnuz)));

  EXPECT_EQ(fp8_to_float(0x3c, Fp8::kE5m2), 1.0f);
  EXPECT_EQ(fp8_to_float(0x7b, Fp8::kE5m2), 57344.0f);
  EXPECT_EQ(fp8_to_float(0xfc, Fp8::kE5m2), -kInfinity);
  EXPECT_TRUE(std::isnan(fp8_to_float(0x7d, Fp8::kE5m2)));
}

// Every number comes back; between two neighbours the nearest, and in the middle the even one.
TEST(Float8, RoundsToNearestEven) {
  for (const auto& [format, largest] :
       {std::pair(Fp8::kE4m3, 0x7e), std::pair(Fp8::kE4m3Fnuz, 0x7f),
        std::pair(Fp8::kE5m2, 0x7b)}) {
    for (int bits = 0; bits <= largest; ++bits) {
      const double low = fp8_to_float(static_cast<uint8_t>(bits), format);
      ASSERT_EQ(fp8_from_double(low, format), bits);
      if (bits == largest) break;
      const double high = fp8_to_float(static_cast<uint8_t>(bits + 1), format);
      const double middle = (low + high) / 2;
      ASSERT_LT(low, high);
      ASSERT_EQ(fp8_from_double(middle, format), bits + (bits & 1));
      ASSERT_EQ(fp8_from_double(std::nextafter(middle, low), format), bits);
      ASSERT_EQ(fp8_from_double(-std::nextafter(middle, high), format), 0x80 | (bits + 1));
    }
    ASSERT_EQ(fp8_from_double(1e30, format), largest);
    ASSERT_EQ(fp8_from_double(-kInfinity, format), 0x80 | largest);
    ASSERT_TRUE(std::isnan(fp8_to_float(fp8_from_double(NAN, format), format)));
  }
  EXPECT_EQ(fp8_from_double(-1e-9, Fp8::kE4m3), 0x80);
  // Its negative zero would be NaN.
  EXPECT_EQ(fp8_from_double(-1e-9, Fp8::kE4m3Fnuz), 0);
  EXPECT_EQ(fp8_from_double(-0.0, Fp8::kE4m3Fnuz), 0);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
