// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Norms and softmax through the C ABI: numbers against definitions and numerical derivatives.
#include "aiter/norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "aiter/runtime/float16.h"

namespace AITER_ATTN_NAMESPACE::norm {
namespace {

using ::testing::Each;

using Vector = std::vector<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

// Elements of a dtype in memory, rows `stride` apart; the bytes between rows are 99.
class Matrix {
 public:
  Matrix(int64_t rows, int64_t columns, int32_t dtype, int64_t padding = 0)
      : rows_(rows), columns_(columns), stride_(columns + padding), dtype_(dtype) {
    memory_.resize(static_cast<size_t>(rows * stride_) * sizeof(float));
    for (int64_t i = 0; i < rows * stride_; ++i) put(i, 99);
  }
  attn_rows rows() { return {memory_.data(), stride_}; }
  void* data() { return memory_.data(); }
  void set(const Vector& values) {
    for (int64_t i = 0; i < rows_ * columns_; ++i) put(at(i), values[static_cast<size_t>(i)]);
  }
  // As they were rounded.
  Vector get() const {
    Vector out;
    for (int64_t i = 0; i < rows_ * columns_; ++i) out.push_back(take(at(i)));
    return out;
  }
  Vector between_rows() const {
    Vector out;
    for (int64_t i = 0; i < rows_ * stride_; ++i) {
      if (i % stride_ >= columns_) out.push_back(take(i));
    }
    return out;
  }

 private:
  int64_t at(int64_t i) const { return i / columns_ * stride_ + i % columns_; }
  void put(int64_t i, double value) {
    const auto single = static_cast<float>(value);
    const uint16_t half = dtype_ == ATTN_DTYPE_FP16 ? runtime::fp16_from_double(value)
                                                    : runtime::bf16_from_double(value);
    const size_t size = dtype_ == ATTN_DTYPE_FP32 ? 4 : 2;
    std::memcpy(memory_.data() + static_cast<size_t>(i) * size,
                size == 4 ? static_cast<const void*>(&single) : &half, size);
  }
  double take(int64_t i) const {
    float single = 0;
    uint16_t half = 0;
    if (dtype_ == ATTN_DTYPE_FP32) {
      std::memcpy(&single, memory_.data() + i * 4, 4);
      return single;
    }
    std::memcpy(&half, memory_.data() + i * 2, 2);
    return dtype_ == ATTN_DTYPE_FP16 ? runtime::fp16_to_float(half) : runtime::bf16_to_float(half);
  }

  int64_t rows_, columns_, stride_;
  int32_t dtype_;
  std::vector<unsigned char> memory_;
};

Vector random_numbers(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Vector out;
  for (int64_t i = 0; i < count; ++i) out.push_back(normal(random));
  return out;
}

// Of the size of one rounding to the type, for numbers around 1.
double unit(int32_t dtype) {
  return dtype == ATTN_DTYPE_FP32   ? 1e-6
         : dtype == ATTN_DTYPE_FP16 ? std::ldexp(1, -10)
                                    : std::ldexp(1, -7);
}

void expect_near(const Vector& got, const Vector& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << "element " << i;
    } else if (std::isinf(want[i])) {
      EXPECT_EQ(got[i], want[i]) << "element " << i;
    } else {
      EXPECT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::fabs(want[i])))
          << "element " << i;
    }
  }
}

struct Types {
  int32_t x, weight, y;
};

attn_norm_problem norm_problem(int32_t kind, int64_t rows, int64_t hidden, const Types& types) {
  attn_norm_problem p = {};
  p.struct_size = sizeof(p);
  p.kind = kind;
  p.device_type = ATTN_DEVICE_CPU;
  p.rows = rows;
  p.hidden = hidden;
  p.x_dtype = types.x;
  p.weight_dtype = types.weight;
  p.y_dtype = types.y;
  p.epsilon = 1e-5f;
  return p;
}

template <typename Args, typename Problem>
Args args_for(const Problem& problem) {
  Args args = {};
  args.struct_size = sizeof(args);
  args.problem = &problem;
  return args;
}

// y by the definition, from numbers as they are stored.
Vector norm_definition(const attn_norm_problem& p, const Vector& h, const Vector& gamma,
                       const Vector& beta) {
  Vector y;
  const auto n = static_cast<size_t>(p.hidden);
  for (size_t row = 0; row < h.size(); row += n) {
    double mean = 0, squares = 0;
    for (size_t c = 0; c < n; ++c) mean += h[row + c] / static_cast<double>(n);
    if (p.kind == ATTN_NORM_RMS) mean = 0;
    for (size_t c = 0; c < n; ++c) squares += std::pow(h[row + c] - mean, 2);
    const double deviation = std::sqrt(squares / static_cast<double>(n) + p.epsilon);
    for (size_t c = 0; c < n; ++c) {
      const double normed = (h[row + c] - mean) / deviation;
      y.push_back(normed * (gamma[c] + p.zero_centred) + (beta.empty() ? 0 : beta[c]));
    }
  }
  return y;
}

class NormTest : public ::testing::TestWithParam<Types> {};

const Types kSingle = {ATTN_DTYPE_FP32, ATTN_DTYPE_FP32, ATTN_DTYPE_FP32};
INSTANTIATE_TEST_SUITE_P(
    Types, NormTest,
    ::testing::Values(kSingle, Types{ATTN_DTYPE_FP16, ATTN_DTYPE_FP16, ATTN_DTYPE_FP16},
                      Types{ATTN_DTYPE_BF16, ATTN_DTYPE_FP32, ATTN_DTYPE_BF16},
                      Types{ATTN_DTYPE_FP32, ATTN_DTYPE_BF16, ATTN_DTYPE_FP16}));

TEST_P(NormTest, Forward) {
  for (const int32_t kind : {ATTN_NORM_LAYER, ATTN_NORM_RMS}) {
    for (const int64_t hidden : {1, 7, 300}) {
      const bool layer = kind == ATTN_NORM_LAYER;
      attn_norm_problem p = norm_problem(kind, 5, hidden, GetParam());
      p.zero_centred = layer ? 0 : 1;
      Matrix x(5, hidden, p.x_dtype, 3), residual(5, hidden, p.x_dtype, 1);
      Matrix sum(5, hidden, p.x_dtype, 2), y(5, hidden, p.y_dtype, 4);
      Matrix gamma(1, hidden, p.weight_dtype), beta(1, hidden, p.weight_dtype);
      x.set(random_numbers(5 * hidden, 1));
      residual.set(random_numbers(5 * hidden, 2));
      gamma.set(random_numbers(hidden, 3));
      beta.set(random_numbers(hidden, 4));
      std::vector<float> mean(5), rstd(5);
      auto args = args_for<attn_norm_fwd_args>(p);
      args.x = x.rows();
      args.y = y.rows();
      args.gamma = gamma.data();
      args.rstd = rstd.data();
      Vector h = x.get();
      if (layer) {
        args.beta = beta.data();
        args.mean = mean.data();
      } else {
        args.residual = residual.rows();
        args.sum = sum.rows();
      }
      ASSERT_EQ(attn_norm_fwd(&args), ATTN_OK) << attn_last_error();
      if (!layer) {
        const Vector other = residual.get();
        for (size_t i = 0; i < h.size(); ++i) h[i] += other[i];
        expect_near(sum.get(), h, unit(p.x_dtype));
        EXPECT_THAT(sum.between_rows(), Each(99));
        h = sum.get();
      }
      expect_near(y.get(), norm_definition(p, h, gamma.get(), layer ? beta.get() : Vector()),
                  unit(p.y_dtype));
      EXPECT_THAT(y.between_rows(), Each(99));
      for (size_t r = 0; r < 5; ++r) {
        double first = 0, second = 0;
        for (size_t c = 0; c < static_cast<size_t>(hidden); ++c) {
          const double value = h[r * static_cast<size_t>(hidden) + c];
          first += value / static_cast<double>(hidden);
          second += value * value / static_cast<double>(hidden);
        }
        if (layer) EXPECT_NEAR(mean[r], first, 1e-6);
        const double variance = second - (layer ? first * first : 0) + p.epsilon;
        EXPECT_NEAR(rstd[r] * std::sqrt(variance), 1, 1e-3);
      }
    }
  }
}

TEST_P(NormTest, BackwardIsTheDerivativeOfForward) {
  for (const int32_t kind : {ATTN_NORM_LAYER, ATTN_NORM_RMS}) {
    constexpr int64_t kRows = 3, kHidden = 300;  // more than one piece of columns
    const bool layer = kind == ATTN_NORM_LAYER;
    attn_norm_problem p = norm_problem(kind, kRows, kHidden, GetParam());
    p.zero_centred = 1;
    Matrix x(kRows, kHidden, p.x_dtype, 1), dy(kRows, kHidden, p.y_dtype, 2);
    Matrix dx(kRows, kHidden, p.x_dtype, 3), dh(kRows, kHidden, p.x_dtype);
    Matrix y(kRows, kHidden, p.y_dtype), gamma(1, kHidden, p.weight_dtype);
    Matrix dgamma(1, kHidden, p.weight_dtype), dbeta(1, kHidden, p.weight_dtype);
    x.set(random_numbers(kRows * kHidden, 1));
    dy.set(random_numbers(kRows * kHidden, 2));
    dh.set(random_numbers(kRows * kHidden, 5));
    gamma.set(random_numbers(kHidden, 3));
    std::vector<float> mean(kRows), rstd(kRows);
    auto forward = args_for<attn_norm_fwd_args>(p);
    forward.x = x.rows();
    forward.y = y.rows();
    forward.gamma = gamma.data();
    forward.mean = layer ? mean.data() : nullptr;
    forward.rstd = rstd.data();
    ASSERT_EQ(attn_norm_fwd(&forward), ATTN_OK) << attn_last_error();
    auto args = args_for<attn_norm_bwd_args>(p);
    args.x = x.rows();
    args.dy = dy.rows();
    args.dx = dx.rows();
    args.dh = dh.rows();
    args.gamma = gamma.data();
    args.mean = layer ? mean.data() : nullptr;
    args.rstd = rstd.data();
    args.dgamma = dgamma.data();
    args.dbeta = layer ? dbeta.data() : nullptr;
    ASSERT_EQ(attn_norm_bwd(&args), ATTN_OK) << attn_last_error();
    EXPECT_THAT(dx.between_rows(), Each(99));

    const Vector weights = gamma.get(), gradient = dy.get(), beta(kHidden, 0.5);
    const auto loss = [&](const Vector& of_x, const Vector& of_gamma, const Vector& of_beta) {
      const Vector value = norm_definition(p, of_x, of_gamma, of_beta);
      double total = 0;
      for (size_t i = 0; i < value.size(); ++i) total += value[i] * gradient[i];
      return total;
    };
    const auto derivative = [&](Vector at, size_t i,
                                const std::function<double(const Vector&)>& f) {
      constexpr double kStep = 1e-5;
      at[i] += kStep;
      const double above = f(at);
      at[i] -= 2 * kStep;
      return (above - f(at)) / (2 * kStep);
    };
    const Vector h = x.get(), back = dh.get(), got = dx.get(), by_gamma = dgamma.get();
    for (size_t i = 0; i < h.size(); i += 41) {
      const double want =
          back[i] + derivative(h, i, [&](const Vector& v) { return loss(v, weights, beta); });
      EXPECT_NEAR(got[i], want, 1e-5 + 2 * unit(p.x_dtype) * std::fabs(want)) << i;
    }
    for (size_t c = 0; c < kHidden; c += 23) {
      const double want = derivative(weights, c, [&](const Vector& v) { return loss(h, v, beta); });
      EXPECT_NEAR(by_gamma[c], want, 1e-5 + 2 * unit(p.weight_dtype) * std::fabs(want)) << c;
      if (!layer) continue;
      const double of_beta =
          derivative(beta, c, [&](const Vector& v) { return loss(h, weights, v); });
      EXPECT_NEAR(dbeta.get()[c], of_beta, 1e-5 + 2 * unit(p.weight_dtype) * std::fabs(of_beta));
    }
  }
}

TEST_P(NormTest, InPlaceIsTheSame) {
  constexpr int64_t kRows = 3, kHidden = 77;
  Types types = GetParam();
  types.y = types.x;
  attn_norm_problem p = norm_problem(ATTN_NORM_RMS, kRows, kHidden, types);
  Matrix x(kRows, kHidden, p.x_dtype, 3), residual(kRows, kHidden, p.x_dtype, 1);
  Matrix sum(kRows, kHidden, p.x_dtype), y(kRows, kHidden, p.y_dtype);
  Matrix gamma(1, kHidden, p.weight_dtype);
  x.set(random_numbers(kRows * kHidden, 1));
  residual.set(random_numbers(kRows * kHidden, 2));
  gamma.set(random_numbers(kHidden, 3));
  auto args = args_for<attn_norm_fwd_args>(p);
  args.x = x.rows();
  args.residual = residual.rows();
  args.gamma = gamma.data();
  args.y = y.rows();
  args.sum = sum.rows();
  ASSERT_EQ(attn_norm_fwd(&args), ATTN_OK) << attn_last_error();
  args.y = x.rows();
  args.sum = residual.rows();
  ASSERT_EQ(attn_norm_fwd(&args), ATTN_OK) << attn_last_error();
  EXPECT_EQ(x.get(), y.get());
  EXPECT_EQ(residual.get(), sum.get());
  EXPECT_THAT(x.between_rows(), Each(99));
}

TEST_P(NormTest, NoGammaIsOne) {
  constexpr int64_t kRows = 3, kHidden = 20;
  for (const int32_t kind : {ATTN_NORM_LAYER, ATTN_NORM_RMS}) {
    const bool layer = kind == ATTN_NORM_LAYER;
    attn_norm_problem p = norm_problem(kind, kRows, kHidden, GetParam());
    Matrix x(kRows, kHidden, p.x_dtype), dy(kRows, kHidden, p.y_dtype);
    Matrix gamma(1, kHidden, p.weight_dtype), dgamma(1, kHidden, p.weight_dtype);
    Matrix dbeta(1, kHidden, p.weight_dtype), dbeta_alone(1, kHidden, p.weight_dtype);
    x.set(random_numbers(kRows * kHidden, 1));
    dy.set(random_numbers(kRows * kHidden, 2));
    gamma.set(Vector(kHidden, 1));
    std::vector<float> mean(kRows), rstd(kRows);
    Vector y_of[2], dx_of[2];
    for (const bool has_gamma : {false, true}) {
      Matrix y(kRows, kHidden, p.y_dtype), dx(kRows, kHidden, p.x_dtype);
      auto forward = args_for<attn_norm_fwd_args>(p);
      forward.x = x.rows();
      forward.y = y.rows();
      forward.gamma = has_gamma ? gamma.data() : nullptr;
      forward.mean = layer ? mean.data() : nullptr;
      forward.rstd = rstd.data();
      ASSERT_EQ(attn_norm_fwd(&forward), ATTN_OK) << attn_last_error();
      y_of[has_gamma] = y.get();
      auto args = args_for<attn_norm_bwd_args>(p);
      args.x = x.rows();
      args.dy = dy.rows();
      args.dx = dx.rows();
      args.mean = forward.mean;
      args.rstd = forward.rstd;
      args.gamma = forward.gamma;
      args.dgamma = has_gamma ? dgamma.data() : nullptr;
      if (layer) args.dbeta = has_gamma ? dbeta.data() : dbeta_alone.data();
      ASSERT_EQ(attn_norm_bwd(&args), ATTN_OK) << attn_last_error();
      dx_of[has_gamma] = dx.get();
      args.dgamma = args.dbeta = nullptr;
      ASSERT_EQ(attn_norm_bwd(&args), ATTN_OK) << attn_last_error();
      EXPECT_EQ(dx.get(), dx_of[has_gamma]);
    }
    EXPECT_EQ(y_of[0], y_of[1]);
    EXPECT_EQ(dx_of[0], dx_of[1]);
    EXPECT_EQ(dbeta_alone.get(), dbeta.get());
  }
}

TEST(NormTest, WithoutRowsTheGradientsOfWeightsAreZero) {
  attn_norm_problem p = norm_problem(ATTN_NORM_LAYER, 0, 4, kSingle);
  std::vector<float> gamma(4, 1), dgamma(4, 7), dbeta(4, 7);
  auto args = args_for<attn_norm_bwd_args>(p);
  args.gamma = gamma.data();
  args.dgamma = dgamma.data();
  args.dbeta = dbeta.data();
  ASSERT_EQ(attn_norm_bwd(&args), ATTN_OK) << attn_last_error();
  EXPECT_THAT(dgamma, Each(0.0f));
  EXPECT_THAT(dbeta, Each(0.0f));
}

struct Cast {
  uint8_t bits;
  float amax;
};
// LayerNorm of one column is beta for any value.
Cast cast_to_fp8(float value, float scale, int32_t dtype) {
  attn_norm_problem p = norm_problem(ATTN_NORM_LAYER, 1, 1, kSingle);
  p.y_dtype = dtype;
  float x = 5, gamma = 3;
  Cast result = {0, 0.25f};
  auto args = args_for<attn_norm_fwd_args>(p);
  args.x = {&x, 1};
  args.y = {&result.bits, 1};
  args.gamma = &gamma;
  args.beta = &value;
  args.scale = &scale;
  args.amax = &result.amax;
  EXPECT_EQ(attn_norm_fwd(&args), ATTN_OK) << attn_last_error();
  return result;
}

double fp8_value(int bits, int mantissa_bits, int bias) {
  const int exponent = bits >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
  if (exponent == 0) return std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

TEST(NormTest, Fp8IsTheNearestNumberAndSaturates) {
  struct Format {
    int32_t dtype;
    int mantissa_bits, bias, largest;
  };
  for (const Format& f :
       {Format{ATTN_DTYPE_FP8_E4M3, 3, 7, 0x7e}, Format{ATTN_DTYPE_FP8_E5M2, 2, 15, 0x7b}}) {
    for (int bits = 0; bits < f.largest; ++bits) {
      const double low = fp8_value(bits, f.mantissa_bits, f.bias);
      const double high = fp8_value(bits + 1, f.mantissa_bits, f.bias);
      const int even = bits % 2 == 0 ? bits : bits + 1;
      const auto middle = static_cast<float>((low + high) / 2);
      EXPECT_EQ(cast_to_fp8(static_cast<float>(low), 1, f.dtype).bits, bits);
      EXPECT_EQ(cast_to_fp8(middle, 1, f.dtype).bits, even);
      EXPECT_EQ(cast_to_fp8(-std::nextafter(middle, 0.0f), 1, f.dtype).bits, bits | 0x80);
      EXPECT_EQ(cast_to_fp8(std::nextafter(middle, 1e9f), 1, f.dtype).bits, bits + 1);
    }
    EXPECT_EQ(cast_to_fp8(1e30f, 1, f.dtype).bits, f.largest);
    EXPECT_EQ(cast_to_fp8(-INFINITY, 1, f.dtype).bits, f.largest | 0x80);
    EXPECT_EQ(cast_to_fp8(NAN, 1, f.dtype).bits & 0x7f, 0x7f);
  }
}

TEST(NormTest, AmaxIsOfWhatIsNotScaledYet) {
  const Cast scaled = cast_to_fp8(-1.5f, 2, ATTN_DTYPE_FP8_E4M3);
  EXPECT_EQ(scaled.bits, 0xc4);  // -3
  EXPECT_EQ(scaled.amax, 1.5f);
  EXPECT_EQ(cast_to_fp8(0.125f, 1, ATTN_DTYPE_FP8_E4M3).amax, 0.25f) << "it was larger before";
  EXPECT_EQ(cast_to_fp8(NAN, 1, ATTN_DTYPE_FP8_E4M3).amax, 0.25f);
}

// Rows of 64 columns that hold `x`, then zeros; LayerNorm of no spread: y is beta.
struct Scaled {
  std::vector<uint8_t> y;
  std::vector<float> of_rows;
  std::vector<uint8_t> of_blocks;
};
Scaled scaled(const std::vector<float>& beta, int32_t dtype) {
  constexpr int64_t kRows = 2, kHidden = 64;
  attn_norm_problem p =
      norm_problem(ATTN_NORM_LAYER, kRows, kHidden, {ATTN_DTYPE_FP32, ATTN_DTYPE_FP32, dtype});
  const std::vector<float> x(kRows * kHidden, 3);
  Scaled out = {std::vector<uint8_t>(kRows * kHidden), std::vector<float>(kRows), {}};
  auto args = args_for<attn_norm_fwd_args>(p);
  args.x = {const_cast<float*>(x.data()), kHidden};
  args.y = {out.y.data(), kHidden};
  args.beta = beta.data();
  args.scales = out.of_rows.data();
  args.scales_kind = ATTN_NORM_SCALES_ROWS;
  EXPECT_EQ(attn_norm_fwd(&args), ATTN_OK) << attn_last_error();
  out.of_blocks.resize(kRows * kHidden / 32);
  args.scales = out.of_blocks.data();
  args.scales_kind = ATTN_NORM_SCALES_BLOCKS;
  std::vector<uint8_t> y(kRows * kHidden);
  args.y.data = y.data();
  EXPECT_EQ(attn_norm_fwd(&args), ATTN_OK) << attn_last_error();
  out.y.insert(out.y.end(), y.begin(), y.end());
  return out;
}

TEST(NormTest, ScalesOfRowsAndBlocks) {
  for (const int32_t dtype : {ATTN_DTYPE_FP8_E4M3, ATTN_DTYPE_FP8_E5M2}) {
    const bool e4m3 = dtype == ATTN_DTYPE_FP8_E4M3;
    const float largest = e4m3 ? 448 : 57344;
    const uint8_t largest_bits = e4m3 ? 0x7e : 0x7b;
    std::vector<float> beta(64, 0);
    beta[0] = -2 * largest;  // its block's exponent is 1
    beta[1] = largest;
    beta[40] = std::nextafter(largest / 4, 1e9f);  // just too large for -2
    const Scaled got = scaled(beta, dtype);
    EXPECT_THAT(got.of_rows, Each(2));
    EXPECT_EQ(got.of_blocks, (std::vector<uint8_t>{128, 126, 128, 126}));
    EXPECT_EQ(got.y[0], 0x80 | largest_bits);    // of the row
    EXPECT_EQ(got.y[128], 0x80 | largest_bits);  // of the block
    EXPECT_EQ(got.y[129], got.y[1]);
  }
}

TEST(NormTest, ScalesOfOddRows) {
  const Scaled zero = scaled(std::vector<float>(64, 0), ATTN_DTYPE_FP8_E4M3);
  EXPECT_THAT(zero.y, Each(0));
  EXPECT_THAT(zero.of_rows, Each(std::ldexp(1.0f, -100)));
  EXPECT_THAT(zero.of_blocks, Each(0));
  std::vector<float> beta(64, 448);
  beta[3] = std::nanf("");
  const Scaled with_nan = scaled(beta, ATTN_DTYPE_FP8_E4M3);
  EXPECT_THAT(with_nan.of_rows, Each(1));
  EXPECT_THAT(with_nan.of_blocks, Each(127));
  EXPECT_EQ(with_nan.y[3] & 0x7f, 0x7f);
  EXPECT_EQ(with_nan.y[4], 0x7e);
  beta[3] = -std::numeric_limits<float>::infinity();
  const Scaled with_infinity = scaled(beta, ATTN_DTYPE_FP8_E4M3);
  EXPECT_THAT(with_infinity.of_rows, Each(std::numeric_limits<float>::infinity()));
  EXPECT_EQ(with_infinity.of_blocks[0], 247);
  EXPECT_EQ(with_infinity.of_blocks[1], 127);
}

TEST(NormTest, ARowSpoilsNoOther) {
  attn_norm_problem p = norm_problem(ATTN_NORM_LAYER, 4, 2, kSingle);
  Matrix x(4, 2, ATTN_DTYPE_FP32), y(4, 2, ATTN_DTYPE_FP32), gamma(1, 2, ATTN_DTYPE_FP32);
  x.set({1, 3, kNan, 3, kInfinity, 3, 1e30, 3e30});
  gamma.set({1, 1});
  auto args = args_for<attn_norm_fwd_args>(p);
  args.x = x.rows();
  args.y = y.rows();
  args.gamma = gamma.data();
  ASSERT_EQ(attn_norm_fwd(&args), ATTN_OK) << attn_last_error();
  expect_near(y.get(), {-1, 1, kNan, kNan, kNan, kNan, -1, 1}, 1e-5);
}

TEST(NormTest, NothingIsLeftOfEqualElements) {
  constexpr int64_t kHidden = 1000;
  attn_norm_problem p = norm_problem(ATTN_NORM_LAYER, 1, kHidden, kSingle);
  p.epsilon = 1e-6f;
  Matrix x(1, kHidden, ATTN_DTYPE_FP32), y(1, kHidden, ATTN_DTYPE_FP32);
  Matrix gamma(1, kHidden, ATTN_DTYPE_FP32);
  x.set(Vector(kHidden, 30000.123));
  gamma.set(Vector(kHidden, 1));
  float mean = 0;
  auto args = args_for<attn_norm_fwd_args>(p);
  args.x = x.rows();
  args.y = y.rows();
  args.gamma = gamma.data();
  args.mean = &mean;
  ASSERT_EQ(attn_norm_fwd(&args), ATTN_OK) << attn_last_error();
  EXPECT_THAT(y.get(), Each(0.0));
  EXPECT_EQ(mean, 30000.123f);
}

attn_softmax_problem softmax_problem(int32_t mask, int64_t rows, int64_t columns, int64_t queries) {
  attn_softmax_problem p = {};
  p.struct_size = sizeof(p);
  p.mask_kind = mask;
  p.device_type = ATTN_DEVICE_CPU;
  p.rows = rows;
  p.columns = columns;
  p.queries = queries;
  p.mask_repeat = mask == ATTN_SOFTMAX_MASK_EXPLICIT ? 1 : 0;
  p.dtype = ATTN_DTYPE_FP32;
  p.scale = 0.5f;
  return p;
}

Vector softmax(const attn_softmax_problem& p, const Vector& x,
               const std::vector<uint8_t>& mask = {}) {
  Matrix in(p.rows, p.columns, p.dtype, 1), out(p.rows, p.columns, p.dtype, 2);
  in.set(x);
  auto args = args_for<attn_softmax_fwd_args>(p);
  args.x = in.rows();
  args.y = out.rows();
  args.mask = mask.empty() ? nullptr : mask.data();
  EXPECT_EQ(attn_softmax_fwd(&args), ATTN_OK) << attn_last_error();
  EXPECT_THAT(out.between_rows(), Each(99));
  return out.get();
}

TEST(SoftmaxTest, Scaled) {
  const double e = std::exp(0.5);
  expect_near(
      softmax(softmax_problem(ATTN_SOFTMAX_MASK_NONE, 3, 2, 1), {0, 1, 1e4, 1e4, -kInfinity, 3}),
      {1 / (1 + e), e / (1 + e), 0.5, 0.5, 0, 1}, 1e-6);
  expect_near(
      softmax(softmax_problem(ATTN_SOFTMAX_MASK_NONE, 2, 2, 1), {-kInfinity, -kInfinity, kNan, 0}),
      {kNan, kNan, kNan, kNan}, 0);
}

TEST(SoftmaxTest, ACommonOffsetChangesNothing) {
  attn_softmax_problem p = softmax_problem(ATTN_SOFTMAX_MASK_NONE, 1, 4, 1);
  p.scale = 0.37f;
  const Vector plain = softmax(p, {0, 1, 2.5, -3});
  for (const double offset : {300, 3000, 30000, -30000}) {
    expect_near(softmax(p, {offset, offset + 1, offset + 2.5, offset - 3}), plain, 3e-7);
  }
}

TEST(SoftmaxTest, ExplicitMask) {
  attn_softmax_problem p = softmax_problem(ATTN_SOFTMAX_MASK_EXPLICIT, 4, 2, 2);
  p.mask_repeat = 2;  // one matrix of two queries, for both
  expect_near(softmax(p, {1, 2, 3, 4, 5, 6, 7, 8}, {1, 1, 0, 1}), {0, 0, 1, 0, 0, 0, 1, 0}, 1e-6);
  p = softmax_problem(ATTN_SOFTMAX_MASK_EXPLICIT, 3, 3, 3);
  expect_near(softmax(p, {kNan, 1, 2, -kInfinity, 1, 2, -3e4, 1, 2}, {0, 1, 1, 0, 1, 1, 0, 1, 1}),
              {kNan, kNan, kNan, 0, 0, 0, 0, 0, 0}, 0);
}

TEST(SoftmaxTest, CausalMask) {
  // Aligned at the bottom right: the first query of three has no column.
  expect_near(softmax(softmax_problem(ATTN_SOFTMAX_MASK_CAUSAL, 6, 2, 3),
                      {1, 2, 3, kNan, 5, 5, 1, 2, 3, 4, 5, 5}),
              {0, 0, 1, 0, 0.5, 0.5, 0, 0, 1, 0, 0.5, 0.5}, 1e-6);
}

TEST(SoftmaxTest, BackwardIsTheDerivativeOfForward) {
  for (const int32_t mask : {ATTN_SOFTMAX_MASK_NONE, ATTN_SOFTMAX_MASK_CAUSAL}) {
    const attn_softmax_problem p = softmax_problem(mask, 4, 5, 2);
    const Vector x = random_numbers(20, 1), gradient = random_numbers(20, 2);
    Matrix y(4, 5, p.dtype), dy(4, 5, p.dtype, 1), dx(4, 5, p.dtype, 2);
    y.set(softmax(p, x));
    dy.set(gradient);
    auto args = args_for<attn_softmax_bwd_args>(p);
    args.y = y.rows();
    args.dy = dy.rows();
    args.dx = dx.rows();
    ASSERT_EQ(attn_softmax_bwd(&args), ATTN_OK) << attn_last_error();
    EXPECT_THAT(dx.between_rows(), Each(99));
    const Vector got = dx.get();
    for (size_t i = 0; i < x.size(); ++i) {
      constexpr double kStep = 1e-2;
      double sides[2] = {};
      for (const int side : {0, 1}) {
        Vector moved = x;
        moved[i] += side ? kStep : -kStep;
        const Vector value = softmax(p, moved);
        for (size_t j = 0; j < value.size(); ++j) sides[side] += value[j] * gradient[j];
      }
      EXPECT_NEAR(got[i], (sides[1] - sides[0]) / (2 * kStep), 1e-4) << i;
    }
  }
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::norm
