// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/norm/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>

#include "aiter/norm/elements.h"
#include "aiter/runtime/parallel.h"

namespace AITER_ATTN_NAMESPACE::norm {
namespace {

using runtime::Pulse;

constexpr int64_t kScaleBlock = 32;  // columns, of ATTN_NORM_SCALES_BLOCKS
constexpr int kExponentBias = 127;   // of E8M0
constexpr double kLeastScale = 0x1p-100;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A row of a matrix; where the matrix has no data, its stride was not checked.
class Row {
 public:
  Row(const attn_rows& m, int32_t dtype, int64_t row)
      : data_(m.data), dtype_(dtype), first_(m.data ? row * m.stride : 0) {}
  double operator[](int64_t column) const { return load(data_, dtype_, first_ + column); }
  void set(int64_t column, double value) const { store(data_, dtype_, first_ + column, value); }

 private:
  void* data_;
  int32_t dtype_;
  int64_t first_;
};

// work(column) for every column of a row, the pulse told of it.
template <typename Work>
void for_columns(int64_t columns, Pulse& pulse, Work&& work) {
  for (int64_t from = 0; from < columns; from += Pulse::kSteps) {
    const int64_t to = std::min(columns, from + Pulse::kSteps);
    for (int64_t c = from; c < to; ++c) work(c);
    pulse(to - from);
  }
}

template <typename Term>
double sum_over(int64_t columns, Pulse& pulse, Term&& term) {
  double sum = 0;
  for_columns(columns, pulse, [&](int64_t c) { sum += term(c); });
  return sum;
}

void for_rows(int64_t rows, int64_t columns, const std::function<void(int64_t, Pulse&)>& work) {
  constexpr double kPasses = 3;
  runtime::parallel_for({rows, kPasses * static_cast<double>(rows) * static_cast<double>(columns),
                         /*scratch=*/0},
                        work);
}

// Of a norm's column.
template <typename Call>
double factor_of(const Call& call, int64_t column) {
  return call.gamma ? load(call.gamma, call.p.weight_dtype, column) + call.p.zero_centred : 1;
}

double fp8_largest(int32_t dtype) {
  return runtime::fp8_largest(dtype == ATTN_DTYPE_FP8_E4M3 ? runtime::Fp8::kE4m3
                                                           : runtime::Fp8::kE5m2);
}

// Of the least power of two by which `largest` can be divided for the type to have it, as far as
// E8M0 goes.
int block_exponent(double largest, int32_t dtype) {
  constexpr int kMost = 127;
  if (std::isinf(largest)) return 128 - (dtype == ATTN_DTYPE_FP8_E4M3 ? 8 : 15);  // as if 2^128
  int exponent = 0;
  const double fraction = std::frexp(largest / fp8_largest(dtype), &exponent);  // from .5 to 1
  if (fraction == 0) return -kExponentBias;
  return std::clamp(fraction == 0.5 ? exponent - 1 : exponent, -kExponentBias, kMost);
}

// The first columns that take part in a row.
int64_t allowed_columns(const attn_softmax_problem& p, int64_t row) {
  if (p.mask_kind != ATTN_SOFTMAX_MASK_CAUSAL) return p.columns;
  return std::clamp<int64_t>(row % p.queries + p.columns - p.queries + 1, 0, p.columns);
}

}  // namespace

void reference(const NormForward& call) {
  const attn_norm_problem& p = call.p;
  const auto hidden = static_cast<double>(p.hidden);
  const bool layer = p.kind == ATTN_NORM_LAYER;
  const double scale = call.scale ? *call.scale : 1;
  std::mutex mutex;
  float amax = call.amax ? *call.amax : 0;
  for_rows(p.rows, p.hidden, [&](int64_t r, Pulse& pulse) {
    const Row x(call.x, p.x_dtype, r), y(call.y, p.y_dtype, r);
    const Row residual(call.residual, p.x_dtype, r), total(call.sum, p.x_dtype, r);
    const bool adds = call.residual.data != nullptr;
    if (adds) for_columns(p.hidden, pulse, [&](int64_t c) { total.set(c, x[c] + residual[c]); });
    const Row& h = adds ? total : x;
    // By differences from an element: the mean of equal ones is just that.
    const double mean =
        layer ? h[0] + sum_over(p.hidden, pulse, [&](int64_t c) { return h[c] - h[0]; }) / hidden
              : 0;
    const double squares =
        sum_over(p.hidden, pulse, [&](int64_t c) { return (h[c] - mean) * (h[c] - mean); });
    const double rstd = 1 / std::sqrt(squares / hidden + p.epsilon);
    double largest = 0;
    const auto value = [&](int64_t c) {
      const double shift = call.beta ? load(call.beta, p.weight_dtype, c) : 0;
      return (h[c] - mean) * rstd * factor_of(call, c) + shift;
    };
    const auto largest_of = [&](int64_t from, int64_t to) {
      double found = 0;
      for (int64_t c = from; c < to; ++c) found = std::fmax(found, std::fabs(value(c)));
      return found;  // of numbers
    };
    if (call.scales_kind == ATTN_NORM_SCALES_ROWS) {
      const auto row_scale = static_cast<float>(
          std::fmax(largest_of(0, p.hidden) / fp8_largest(p.y_dtype), kLeastScale));
      pulse(p.hidden);
      static_cast<float*>(call.scales)[r] = row_scale;
      for_columns(p.hidden, pulse, [&](int64_t c) { y.set(c, value(c) / row_scale); });
    } else if (call.scales_kind == ATTN_NORM_SCALES_BLOCKS) {
      const int64_t blocks = p.hidden / kScaleBlock;
      auto* const exponents = static_cast<uint8_t*>(call.scales) + r * blocks;
      for (int64_t block = 0; block < blocks; ++block) {
        const int64_t from = block * kScaleBlock, to = from + kScaleBlock;
        const int exponent = block_exponent(largest_of(from, to), p.y_dtype);
        exponents[block] = static_cast<uint8_t>(exponent + kExponentBias);
        for (int64_t c = from; c < to; ++c) y.set(c, std::ldexp(value(c), -exponent));
        pulse(2 * kScaleBlock);
      }
    } else {
      for_columns(p.hidden, pulse, [&](int64_t c) {
        const double unscaled = value(c);
        largest = std::fmax(largest, std::fabs(unscaled));  // keeps to numbers
        y.set(c, unscaled * scale);
      });
    }
    if (call.mean) call.mean[r] = static_cast<float>(mean);
    if (call.rstd) call.rstd[r] = static_cast<float>(rstd);
    if (call.amax) {
      const std::lock_guard<std::mutex> lock(mutex);
      amax = std::fmax(amax, static_cast<float>(largest));
    }
  });
  if (call.amax) *call.amax = amax;
}

void reference(const NormBackward& call) {
  const attn_norm_problem& p = call.p;
  const auto hidden = static_cast<double>(p.hidden);
  const bool layer = p.kind == ATTN_NORM_LAYER;
  const auto xhat = [&](const Row& x, int64_t r, int64_t c) {
    return (x[c] - (layer ? call.mean[r] : 0.0)) * call.rstd[r];
  };
  for_rows(p.rows, p.hidden, [&](int64_t r, Pulse& pulse) {
    const Row x(call.x, p.x_dtype, r), dy(call.dy, p.y_dtype, r), dx(call.dx, p.x_dtype, r);
    const Row dh(call.dh, p.x_dtype, r);
    const auto wdy = [&](int64_t c) { return dy[c] * factor_of(call, c); };
    const double along =
        sum_over(p.hidden, pulse, [&](int64_t c) { return wdy(c) * xhat(x, r, c); }) / hidden;
    const double shift = layer ? sum_over(p.hidden, pulse, wdy) / hidden : 0;
    for_columns(p.hidden, pulse, [&](int64_t c) {
      const double value = (wdy(c) - along * xhat(x, r, c) - shift) * call.rstd[r];
      dx.set(c, call.dh.data ? value + dh[c] : value);
    });
  });
  if (!call.dgamma && !call.dbeta) return;
  // Columns in pieces, each over all rows in their order.
  constexpr int64_t kPiece = 256;
  const int64_t pieces = (p.hidden + kPiece - 1) / kPiece;
  for_rows(pieces, kPiece * p.rows, [&](int64_t piece, Pulse& pulse) {
    double dgamma[kPiece] = {}, dbeta[kPiece] = {};
    const int64_t from = piece * kPiece, count = std::min(kPiece, p.hidden - from);
    for (int64_t r = 0; r < p.rows; ++r) {
      const Row x(call.x, p.x_dtype, r), dy(call.dy, p.y_dtype, r);
      for (int64_t i = 0; i < count; ++i) {
        dgamma[i] += dy[from + i] * xhat(x, r, from + i);
        dbeta[i] += dy[from + i];
      }
      pulse(count);
    }
    for (int64_t i = 0; i < count; ++i) {
      if (call.dgamma) store(call.dgamma, p.weight_dtype, from + i, dgamma[i]);
      if (call.dbeta) store(call.dbeta, p.weight_dtype, from + i, dbeta[i]);
    }
  });
}

void reference(const SoftmaxForward& call) {
  constexpr double kMasked = -10000;
  const attn_softmax_problem& p = call.p;
  for_rows(p.rows, p.columns, [&](int64_t r, Pulse& pulse) {
    const Row x(call.x, p.dtype, r), y(call.y, p.dtype, r);
    const int64_t columns = allowed_columns(p, r);
    const uint8_t* mask = nullptr;
    if (p.mask_kind == ATTN_SOFTMAX_MASK_EXPLICIT) {
      const int64_t matrix = r / p.queries / p.mask_repeat;
      mask = call.mask + (matrix * p.queries + r % p.queries) * p.columns;
    }
    const auto score = [&](int64_t c) {
      return mask && mask[c] == 1 ? kMasked : x[c] * double{p.scale};
    };
    double largest = -kInfinity;
    for_columns(columns, pulse, [&](int64_t c) { largest = std::fmax(largest, score(c)); });
    const double sum =
        sum_over(columns, pulse, [&](int64_t c) { return std::exp(score(c) - largest); });
    const bool nothing = mask && largest == kMasked && !std::isnan(sum);  // NaN is in the sum alone
    for_columns(p.columns, pulse, [&](int64_t c) {
      y.set(c, nothing || c >= columns ? 0 : std::exp(score(c) - largest) / sum);
    });
  });
}

void reference(const SoftmaxBackward& call) {
  const attn_softmax_problem& p = call.p;
  for_rows(p.rows, p.columns, [&](int64_t r, Pulse& pulse) {
    const Row y(call.y, p.dtype, r), dy(call.dy, p.dtype, r), dx(call.dx, p.dtype, r);
    const int64_t columns = allowed_columns(p, r);
    const double sum = sum_over(columns, pulse, [&](int64_t c) { return y[c] * dy[c]; });
    for_columns(p.columns, pulse, [&](int64_t c) {
      dx.set(c, c >= columns ? 0 : double{p.scale} * y[c] * (dy[c] - sum));
    });
  });
}

}  // namespace AITER_ATTN_NAMESPACE::norm
