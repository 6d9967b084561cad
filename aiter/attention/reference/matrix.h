// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A dense matrix of doubles, and the two loops that attention consists of. Both run along
// contiguous memory without a carried sum, so that compilers vectorise them without reordering a
// sum.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace AITER_ATTN_NAMESPACE::attention {

class Matrix {
 public:
  // All zero, and where it is large, at no cost before it is used.
  Matrix(int64_t rows, int64_t columns)
      : columns_(columns),
        values_(static_cast<double*>(std::calloc(rows, columns * sizeof(double))), &std::free) {
    if (!values_ && rows != 0 && columns != 0) throw std::bad_alloc();
  }
  double* row(int64_t i) { return values_.get() + i * columns_; }
  const double* row(int64_t i) const { return values_.get() + i * columns_; }

 private:
  int64_t columns_;
  std::unique_ptr<double[], void (*)(void*)> values_;
};

// y[begin, end) += a * x[begin, end)
inline void add_scaled(double a, const double* x, double* y, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) y[i] += a * x[i];
}

// y[j] = sum over i of x[i] * m[i][j], for j in [begin, end)
inline void multiply(const double* x, int64_t count, const Matrix& m, double* y, int64_t begin,
                     int64_t end) {
  for (int64_t j = begin; j < end; ++j) y[j] = 0;
  for (int64_t i = 0; i < count; ++i) add_scaled(x[i], m.row(i), y, begin, end);
}

}  // namespace AITER_ATTN_NAMESPACE::attention
