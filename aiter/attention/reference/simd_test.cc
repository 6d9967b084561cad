// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The loops for each width of vectors that this machine has, against plain ones.
#include "aiter/attention/reference/simd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "aiter/attention/reference/matrix.h"
#include "aiter/runtime/float16.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class SimdTest : public testing::TestWithParam<Loops> {
 protected:
  std::vector<double> drawn(int64_t count, double least, double most) {
    std::uniform_real_distribution<double> distribution(least, most);
    std::vector<double> numbers(count);
    for (double& number : numbers) number = distribution(random_);
    return numbers;
  }

  const Loops loops_ = GetParam();
  std::mt19937 random_{1};
};

TEST_P(SimdTest, Multiplies) {
  for (const bool transposed : {false, true}) {
    for (int64_t rows = 1; rows < 20; ++rows) {
      for (const int64_t depth : {0, 1, 5, 33}) {
        for (const int64_t columns : {1, 16, 40}) {
          const bool adds = rows % 2 == 0;
          Matrix a(transposed ? depth : rows, transposed ? rows : depth), c(rows, columns);
          Panels b(depth, columns);
          const std::vector<double> numbers = drawn(3000, -1, 1);
          size_t next = 0;
          const auto at = [&](int64_t i, int64_t k) -> double& {
            return transposed ? a.row(k)[i] : a.row(i)[k];
          };
          std::vector<std::vector<double>> expected(rows, std::vector<double>(columns));
          for (int64_t k = 0; k < depth; ++k) {
            for (int64_t i = 0; i < rows; ++i) at(i, k) = numbers[next++];
            for (int64_t j = 0; j < columns; ++j) *b.at(k, j) = numbers[next++];
          }
          for (int64_t i = 0; i < rows; ++i) {
            for (int64_t j = 0; j < columns; ++j) {
              c.row(i)[j] = numbers[next++];
              if (adds) expected[i][j] = c.row(i)[j];
              for (int64_t k = 0; k < depth; ++k) expected[i][j] += at(i, k) * *b.at(k, j);
            }
          }
          loops_.multiply({a.row(0), transposed ? 1 : a.step(), transposed ? a.step() : 1,
                           b.at(0, 0), b.step(), c.row(0), c.step(), rows, depth, b.columns(),
                           adds});
          for (int64_t i = 0; i < rows; ++i) {
            for (int64_t j = 0; j < columns; ++j) {
              ASSERT_NEAR(c.row(i)[j], expected[i][j], 1e-14);
            }
          }
        }
      }
    }
  }
}

TEST_P(SimdTest, ExponentialsToTwoUlp) {
  for (const double least : {-700.0, -20.0, -1e-3}) {
    std::vector<double> x = drawn(4096, least, 0);
    const std::vector<double> before = x;
    const double sum = loops_.exponentials(x.data(), 4096, 0.5);
    long double expected = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = std::exp(before[i] - 0.5);
      ASSERT_NEAR(x[i], exact, exact * 0x1p-51) << before[i];
      expected += exact;
    }
    EXPECT_NEAR(sum, expected, static_cast<double>(expected) * 1e-13);
  }
}

TEST_P(SimdTest, ExponentialsOfWhatIsNoNumber) {
  std::vector<double> x(16, -1);
  const std::vector<double> given = {0, -kInfinity, kInfinity, kNan, -800, 800, 709, -708};
  std::copy(given.begin(), given.end(), x.begin());
  loops_.exponentials(x.data(), 16, 0);
  EXPECT_EQ(x[0], 1);
  EXPECT_EQ(x[1], 0);
  EXPECT_EQ(x[2], kInfinity);
  EXPECT_TRUE(std::isnan(x[3]));
  EXPECT_EQ(x[4], 0);
  EXPECT_EQ(x[5], kInfinity);
  EXPECT_NEAR(x[6], std::exp(709), std::exp(709) * 1e-15);
  EXPECT_NEAR(x[7], std::exp(-708), std::exp(-708) * 1e-15);
}

TEST_P(SimdTest, Caps) {
  std::vector<double> plain = drawn(256, -300, 300);
  plain[0] = kInfinity, plain[1] = -kInfinity, plain[2] = kNan, plain[3] = 0;
  std::vector<double> capped = plain;
  loops_.cap(capped.data(), 256, 30);
  for (size_t i = 0; i < plain.size(); ++i) {
    if (i == 2) continue;
    EXPECT_NEAR(capped[i], 30 * std::tanh(plain[i] / 30), 30 * 0x1p-51);
  }
  EXPECT_TRUE(std::isnan(capped[2]));
}

TEST_P(SimdTest, TheGreatest) {
  for (int64_t place = 0; place < 32; ++place) {
    std::vector<double> x = drawn(32, -1, 1);
    x[(place + 5) % 32] = kNan;
    x[place] = 2;
    EXPECT_EQ(loops_.greatest(x.data(), 32, -kInfinity), 2);
    EXPECT_EQ(loops_.greatest(x.data(), 32, 3), 3);
    EXPECT_TRUE(std::isnan(loops_.greatest(x.data(), 32, kNan)));
  }
}

TEST_P(SimdTest, Gradients) {
  const std::vector<double> score = drawn(64, -5, 5), product = drawn(64, -5, 5);
  std::vector<double> x = score, y = product;
  loops_.gradients(x.data(), y.data(), 64, 1.5, 0.25);
  for (size_t i = 0; i < x.size(); ++i) {
    const double weight = std::exp(score[i] - 1.5);
    EXPECT_NEAR(x[i], weight, weight * 1e-15);
    EXPECT_NEAR(y[i], weight * (product[i] - 0.25), weight * 1e-14);
  }
}

TEST_P(SimdTest, EveryBf16) {
  std::vector<uint16_t> all(1 << 16);
  std::iota(all.begin(), all.end(), 0);
  std::vector<double> wide(all.size());
  ASSERT_EQ(loops_.from_bf16(all.data(), static_cast<int64_t>(all.size()), wide.data()),
            static_cast<int64_t>(all.size()));
  for (const uint16_t bits : all) {
    const double expected = runtime::bf16_to_float(bits);
    ASSERT_EQ(std::memcmp(&wide[bits], &expected, sizeof(expected)), 0) << bits;
  }
  // 19 elements: whole vectors alone.
  std::vector<double> some(20, 7);
  const int64_t done = loops_.from_bf16(all.data(), 19, some.data());
  EXPECT_GE(done, 16);
  EXPECT_LE(done, 19);
  EXPECT_EQ(some[done], 7);
}

TEST_P(SimdTest, RoundsToBf16Once) {
  // Beside and at the middle between two numbers of bf16, of every exponent and each sign.
  std::vector<double> x;
  for (int exponent = -126; exponent <= 127; ++exponent) {
    for (const double mantissa : {1.0, 1.0 + 0x1p-8, 1.0 + 0x1.8p-7, 1.5, 2 - 0x1p-8, 2 - 0x1p-9}) {
      for (const double nearby : {-0x1p-52, 0.0, 0x1p-52}) {
        const double magnitude = std::ldexp(mantissa + nearby, exponent);
        if (magnitude < 0x1p-126) continue;
        x.push_back(magnitude);
        x.push_back(-magnitude);
      }
    }
  }
  x.resize(x.size() / 16 * 16);
  std::vector<uint16_t> rounded(x.size());
  ASSERT_EQ(loops_.to_bf16(x.data(), static_cast<int64_t>(x.size()), rounded.data()),
            static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(rounded[i], runtime::bf16_from_double(x[i])) << x[i];
  }
}

TEST_P(SimdTest, LeavesWhatIsNoNormalBf16) {
  for (const double other :
       {0.0, -0.0, 0x1p-127, -0x1.fffffffffffffp-127, 1e300, kInfinity, kNan}) {
    std::vector<double> x(48, 1.5);
    x[33] = other;
    std::vector<uint16_t> y(48, 7);
    EXPECT_EQ(loops_.to_bf16(x.data(), 48, y.data()), 32) << other;
    EXPECT_EQ(y[31], 0x3fc0);
    EXPECT_EQ(y[32], 7);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SimdTest, testing::ValuesIn(all_loops()),
                         [](const auto& info) { return std::string(info.param.vectors); });

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention
