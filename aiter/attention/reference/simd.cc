// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/reference/simd.h"

#include <cstdint>
#include <limits>
#include <vector>

// Functions here are inlined into those that are compiled for a kind of processor: vectors are
// passed by reference, as what passes them by value differs between kinds.
#define INLINE [[gnu::always_inline]] static inline

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <int kBytes>
struct Vectors {
  typedef double Double __attribute__((vector_size(kBytes)));
  typedef int64_t Int __attribute__((vector_size(kBytes)));
  typedef float Float __attribute__((vector_size(kBytes / 2)));
  typedef uint32_t Word __attribute__((vector_size(kBytes / 2)));
  typedef uint16_t Half __attribute__((vector_size(kBytes / 4)));
  static constexpr int64_t kCount = kBytes / sizeof(double);
};

template <typename Vector, typename Element>
INLINE void load(Vector& vector, const Element* from) {
  __builtin_memcpy(&vector, from, sizeof(vector));
}

template <typename Vector, typename Element>
INLINE void store(const Vector& vector, Element* to) {
  __builtin_memcpy(to, &vector, sizeof(vector));
}

// kRows rows of c, as many columns as two vectors have.
template <typename V, int kRows>
INLINE void multiply_tile(const Gemm& g, const double* a, const double* b, double* c) {
  typename V::Double sum[kRows][2] = {};
  if (g.adds) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      load(sum[r][0], c + r * g.c_row);
      load(sum[r][1], c + r * g.c_row + V::kCount);
    }
  }
  for (int64_t k = 0; k < g.depth; ++k) {
    typename V::Double left, right;
    load(left, b + k * kPanel);
    load(right, b + k * kPanel + V::kCount);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const double factor = a[r * g.a_row + k * g.a_column];
      sum[r][0] += factor * left;
      sum[r][1] += factor * right;
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    store(sum[r][0], c + r * g.c_row);
    store(sum[r][1], c + r * g.c_row + V::kCount);
  }
}

// All rows from i on that make tiles of kRows. Returns the first of the others.
template <typename V, int kRows>
INLINE int64_t multiply_rows(const Gemm& g, const double* b, double* c, int64_t i) {
  for (; i + kRows <= g.rows; i += kRows) {
    multiply_tile<V, kRows>(g, g.a + i * g.a_row, b, c + i * g.c_row);
  }
  return i;
}

// kMost: rows whose sums the registers hold.
template <typename V, int kMost>
INLINE void multiply(const Gemm& g) {
  for (int64_t column = 0; column < g.columns; column += 2 * V::kCount) {
    const double* const b = g.b + column / kPanel * g.b_panel + column % kPanel;
    double* const c = g.c + column;
    int64_t i = multiply_rows<V, kMost>(g, b, c, 0);
    i = multiply_rows<V, kMost / 2>(g, b, c, i);
    i = multiply_rows<V, 2>(g, b, c, i);
    multiply_rows<V, 1>(g, b, c, i);
  }
}

// x = exp(x), to about a unit in the last place: e^x = 2^n * e^r, where |r| <= log(2) / 2, and e^r
// by the polynomial of its degree whose greatest relative error there is least (3.6e-18).
template <typename V>
INLINE void exponential(typename V::Double& x) {
  using Double = typename V::Double;
  using Int = typename V::Int;
  // Added to a number, it leaves the nearest integer in the lowest bits.
  constexpr double kRound = 0x1.8p52;
  const Double rounded = x * 0x1.71547652b82fep+0 + kRound;
  const Double n = rounded - kRound;
  // log(2) in two parts: n times the first is exact.
  const Double r = (x - n * 0x1.62e42fefa38p-1) - n * 0x1.ef35793c7673p-45;
  Double y = r * 0x1.ad7f3ee016e7dp-26 + 0x1.28ad9b8551757p-22;
  y = y * r + 0x1.71df25b3100a2p-19;
  y = y * r + 0x1.a01999e2633fdp-16;
  y = y * r + 0x1.a01a012a0f351p-13;
  y = y * r + 0x1.6c16c18438b08p-10;
  y = y * r + 0x1.1111111127d0ep-7;
  y = y * r + 0x1.555555555083ep-5;
  y = y * r + 0x1.55555555554f9p-3;
  y = y * r + 0x1.000000000000ap-1;
  y = y * r + 1;
  y = y * r + 1;
  const Int bits = (Int)y + ((Int)rounded << 52);
  y = (Double)bits;
  y = x < -708 ? Double{} : y;
  // Else infinity, or the NaN that it is.
  x = x <= 709 ? y : x + kInfinity;
}

template <typename V>
INLINE void cap(double* x, int64_t count, double most) {
  using Double = typename V::Double;
  for (int64_t i = 0; i < count; i += V::kCount) {
    Double value;
    load(value, x + i);
    // tanh(|y|) = (1 - e^(-2|y|)) / (1 + e^(-2|y|)), exact enough beside `most`.
    const Double y = value / most;
    Double e = y < 0 ? 2 * y : -2 * y;
    exponential<V>(e);
    const Double capped = most * (1 - e) / (1 + e);
    value = y < 0 ? -capped : capped;
    store(value, x + i);
  }
}

template <typename V>
INLINE double greatest(const double* x, int64_t count, double least) {
  // Two, of which neither waits for the other.
  typename V::Double most[2];
  most[0] = most[1] = typename V::Double{} + least;
  for (int64_t i = 0; i < count; i += 2 * V::kCount) {
    typename V::Double value[2];
    load(value, x + i);
    most[0] = most[0] < value[0] ? value[0] : most[0];
    most[1] = most[1] < value[1] ? value[1] : most[1];
  }
  most[0] = most[0] < most[1] ? most[1] : most[0];
  double result = most[0][0];
  for (int64_t i = 1; i < V::kCount; ++i) result = result < most[0][i] ? most[0][i] : result;
  return result;
}

template <typename V>
INLINE double exponentials(double* x, int64_t count, double shift) {
  typename V::Double sum{};
  for (int64_t i = 0; i < count; i += V::kCount) {
    typename V::Double value;
    load(value, x + i);
    value -= shift;
    exponential<V>(value);
    store(value, x + i);
    sum += value;
  }
  double result = 0;
  for (int64_t i = 0; i < V::kCount; ++i) result += sum[i];
  return result;
}

template <typename V>
INLINE void gradients(double* x, double* y, int64_t count, double shift, double mean) {
  for (int64_t i = 0; i < count; i += V::kCount) {
    typename V::Double weight, gradient;
    load(weight, x + i);
    load(gradient, y + i);
    weight -= shift;
    exponential<V>(weight);
    store(weight, x + i);
    store(weight * (gradient - mean), y + i);
  }
}

template <typename V>
INLINE int64_t from_bf16(const uint16_t* x, int64_t count, double* y) {
  int64_t i = 0;
  for (; i + V::kCount <= count; i += V::kCount) {
    typename V::Half half;
    load(half, x + i);
    const auto bits = __builtin_convertvector(half, typename V::Word) << 16;
    store(__builtin_convertvector((typename V::Float)bits, typename V::Double), y + i);
  }
  return i;
}

template <typename V>
INLINE int64_t to_bf16(const double* x, int64_t count, uint16_t* y) {
  using Int = typename V::Int;
  constexpr int kDropped = 52 - 7;
  constexpr int64_t kLeast = int64_t{1023 - 126} << 52, kMost = int64_t{1023 + 128} << 52;
  int64_t i = 0;
  for (; i + V::kCount <= count; i += V::kCount) {
    Int bits;
    load(bits, x + i);
    const Int magnitude = bits & std::numeric_limits<int64_t>::max();
    const Int others = (magnitude < kLeast) | (magnitude >= kMost);
    if (__builtin_reduce_or(others) != 0) break;
    // A carry out of the mantissa counts up the exponent, in the end to infinity's.
    const Int is_odd = (magnitude >> kDropped) & 1;
    const Int rounded = (magnitude + ((int64_t{1} << (kDropped - 1)) - 1) + is_odd) >> kDropped;
    const Int sign = (bits >> 48) & 0x8000;
    store(__builtin_convertvector(sign | (rounded - (int64_t{1023 - 127} << 7)), typename V::Half),
          y + i);
  }
  return i;
}

// TARGET is an attribute, BYTES an argument of a template.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define LOOPS_FOR(NAME, TARGET, BYTES, ROWS)                                            \
  namespace NAME {                                                                      \
  TARGET void multiply(const Gemm& g) { attention::multiply<Vectors<BYTES>, ROWS>(g); } \
  TARGET void cap(double* x, int64_t n, double most) {                                  \
    attention::cap<Vectors<BYTES>>(x, n, most);                                         \
  }                                                                                     \
  TARGET double greatest(const double* x, int64_t n, double least) {                    \
    return attention::greatest<Vectors<BYTES>>(x, n, least);                            \
  }                                                                                     \
  TARGET double exponentials(double* x, int64_t n, double shift) {                      \
    return attention::exponentials<Vectors<BYTES>>(x, n, shift);                        \
  }                                                                                     \
  TARGET void gradients(double* x, double* y, int64_t n, double shift, double mean) {   \
    attention::gradients<Vectors<BYTES>>(x, y, n, shift, mean);                         \
  }                                                                                     \
  TARGET int64_t from_bf16(const uint16_t* x, int64_t n, double* y) {                   \
    return attention::from_bf16<Vectors<BYTES>>(x, n, y);                               \
  }                                                                                     \
  TARGET int64_t to_bf16(const double* x, int64_t n, uint16_t* y) {                     \
    return attention::to_bf16<Vectors<BYTES>>(x, n, y);                                 \
  }                                                                                     \
  constexpr Loops kLoops = {#NAME,        multiply,  cap,       greatest,               \
                            exponentials, gradients, from_bf16, to_bf16};               \
  }
// NOLINTEND(bugprone-macro-parentheses)

LOOPS_FOR(avx512, __attribute__((target("avx512f,avx512dq,avx512vl,fma"))), 64, 12)
LOOPS_FOR(avx2, __attribute__((target("avx2,fma"))), 32, 4)
LOOPS_FOR(sse2, , 16, 4)

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

}  // namespace

std::vector<Loops> all_loops() {
  std::vector<Loops> all = {sse2::kLoops};
  if (has_avx2()) all.push_back(avx2::kLoops);
  if (has_avx512()) all.push_back(avx512::kLoops);
  return all;
}

// Asks each time: a value that the first call keeps would be in the making when a process forks.
const Loops& loops() {
  if (has_avx512()) return avx512::kLoops;
  return has_avx2() ? avx2::kLoops : sse2::kLoops;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
