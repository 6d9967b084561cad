// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Attention on the CPU by the library, compared with the formula in double. Prints the number of
// kernels that are built in.
#include <cmath>
#include <cstdio>
#include <vector>

#include "aiter/attn.h"
#include "aiter/attn.hpp"

namespace {

constexpr int kQueries = 3, kKeys = 5, kHeadSize = 8;

std::vector<float> numbers(int count, float step) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) values[static_cast<size_t>(i)] = std::sin(step * (i + 1));
  return values;
}

// softmax(q k^T / sqrt(head size)) v of a query, for one of v's columns.
double attend(const float* q, const std::vector<float>& k, const std::vector<float>& v,
              int column) {
  double sum = 0, weighted = 0;
  for (int key = 0; key < kKeys; ++key) {
    double score = 0;
    for (int i = 0; i < kHeadSize; ++i) score += double{q[i]} * k[key * kHeadSize + i];
    const double weight = std::exp(score / std::sqrt(double{kHeadSize}));
    sum += weight;
    weighted += weight * v[key * kHeadSize + column];
  }
  return weighted / sum;
}

}  // namespace

int main() {
  namespace attn = AITER_ATTN_NAMESPACE::attn;
  const std::vector<float> q = numbers(kQueries * kHeadSize, 0.7F);
  const std::vector<float> k = numbers(kKeys * kHeadSize, 1.1F);
  const std::vector<float> v = numbers(kKeys * kHeadSize, 1.9F);
  std::vector<float> o(q.size());
  const attn_problem problem =
      attn::batch_problem(ATTN_DTYPE_FP32, {1, 1, 1, kQueries, kKeys, kHeadSize});
  attn_fwd_args args = attn::fwd_args(&problem);
  args.q = attn::contiguous(q.data(), kQueries, 1, kHeadSize);
  args.k = attn::contiguous(k.data(), kKeys, 1, kHeadSize);
  args.v = attn::contiguous(v.data(), kKeys, 1, kHeadSize);
  args.o = attn::contiguous(o.data(), kQueries, 1, kHeadSize);
  attn::fwd(args);
  for (int i = 0; i < kQueries * kHeadSize; ++i) {
    const double expected = attend(&q[i / kHeadSize * kHeadSize], k, v, i % kHeadSize);
    if (!(std::abs(o[i] - expected) < 1e-6)) {
      std::printf("number %d is %g, not %g\n", i, double{o[i]}, expected);
      return 1;
    }
  }
  std::printf("right; %d kernels\n", static_cast<int>(attn_kernel_count()));
  return 0;
}
