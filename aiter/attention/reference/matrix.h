// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Dense matrices of doubles, by rows and in the panels that loops read (simd.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>

#include "aiter/attention/reference/simd.h"

namespace AITER_ATTN_NAMESPACE::attention {

// The columns of whole panels.
inline int64_t in_panels(int64_t columns) { return (columns + kPanel - 1) / kPanel * kPanel; }

// All zero, and where it is large, at no cost before it is used.
class Memory {
 public:
  explicit Memory(int64_t count)
      : values_(static_cast<double*>(std::calloc(count + kLine, sizeof(double))), &std::free) {
    if (!values_) throw std::bad_alloc();
    // No vector lies in two lines of a cache.
    const auto address = reinterpret_cast<uintptr_t>(values_.get()) / sizeof(double);
    first_ = values_.get() + (kLine - address % kLine) % kLine;
  }
  double* first() { return first_; }
  const double* first() const { return first_; }

 private:
  static constexpr int64_t kLine = 8;
  std::unique_ptr<double[], void (*)(void*)> values_;
  double* first_;
};

// By rows, which have room for whole panels.
class Matrix {
 public:
  Matrix(int64_t rows, int64_t columns)
      : rows_(rows), step_(in_panels(columns)), memory_(rows * step_) {}

  double* row(int64_t i) { return memory_.first() + i * step_; }
  const double* row(int64_t i) const { return memory_.first() + i * step_; }
  int64_t step() const { return step_; }  // from a row to the next
  void clear() { std::fill(row(0), row(rows_), 0); }

 private:
  int64_t rows_, step_;
  Memory memory_;
};

// By panels of kPanel columns: in a panel, one row behind the other.
class Panels {
 public:
  Panels(int64_t rows, int64_t columns)
      : rows_(rows), columns_(in_panels(columns)), memory_(rows * columns_) {}

  double* at(int64_t row, int64_t column) {
    return memory_.first() + column / kPanel * step() + row * kPanel + column % kPanel;
  }
  const double* at(int64_t row, int64_t column) const {
    return memory_.first() + column / kPanel * step() + row * kPanel + column % kPanel;
  }
  int64_t step() const { return rows_ * kPanel; }  // from a panel to the next
  int64_t columns() const { return columns_; }

  // Whether the first of its rows hold neither NaN nor infinity.
  bool is_finite(int64_t rows) const {
    int64_t others = 0;
    for (int64_t column = 0; column < columns_; column += kPanel) {
      const double* const panel = at(0, column);
      for (int64_t i = 0; i < rows * kPanel; ++i) {
        others |= std::fabs(panel[i]) <= std::numeric_limits<double>::max() ? 0 : 1;
      }
    }
    return others == 0;
  }

  // y += a * a row.
  void add_row(double a, int64_t row, double* y) const {
    for (int64_t column = 0; column < columns_; ++column) y[column] += a * *at(row, column);
  }

 private:
  int64_t rows_, columns_;
  Memory memory_;
};

}  // namespace AITER_ATTN_NAMESPACE::attention
