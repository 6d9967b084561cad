// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The loops that attention on the CPU spends its time in, in double, for each width of vectors that
// a processor may have. Their results do not depend on the width but for roundings: with AVX a
// product and the sum that it is added to are rounded once (FMA).
#pragma once

#include <cstdint>
#include <vector>

namespace AITER_ATTN_NAMESPACE::attention {

// Columns of a panel: all of a panel's rows lie behind each other (panels.h).
inline constexpr int64_t kPanel = 16;

// c = a * b or c += a * b, where c and a are [rows][columns] and [rows][depth] and b is in panels.
struct Gemm {
  const double* a;
  int64_t a_row, a_column;  // steps from an element to the next row's and to the next column's
  const double* b;
  int64_t b_panel;  // step from a panel to the next
  double* c;
  int64_t c_row;
  int64_t rows, depth;
  int64_t columns;  // a multiple of kPanel
  bool adds;        // to c
};

// Rows of numbers have a count that is a multiple of kPanel.
struct Loops {
  const char* vectors;  // whose they are

  void (*multiply)(const Gemm& gemm);
  // x = most * tanh(x / most).
  void (*cap)(double* x, int64_t count, double most);
  // The greatest of x and `least`. A NaN is no element's neighbour: only that of `least` comes out.
  double (*greatest)(const double* x, int64_t count, double least);
  // x = exp(x - shift). Returns the sum. Numbers below the least normal one become 0.
  double (*exponentials)(double* x, int64_t count, double shift);
  // x = exp(x - shift), and y = x * (y - mean).
  void (*gradients)(double* x, double* y, int64_t count, double shift, double mean);
  // bf16 to double and, rounded once, to nearest even, from double. Both return how many of the
  // `count` first elements are done: whole vectors, and from double those before the first one
  // with what is not a normal number of bf16.
  int64_t (*from_bf16)(const uint16_t* x, int64_t count, double* y);
  int64_t (*to_bf16)(const double* x, int64_t count, uint16_t* y);
};

// Of the widest vectors that this processor has.
const Loops& loops();

// All that this processor can execute, for tests.
std::vector<Loops> all_loops();

}  // namespace AITER_ATTN_NAMESPACE::attention
