// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The tiles that attention on the CPU is computed in: scores of some queries and some keys, which
// stay in a core's cache.
#pragma once

#include <algorithm>
#include <cstdint>

#include "aiter/attention/reference/matrix.h"
#include "aiter/attention/reference/sequence.h"
#include "aiter/attention/reference/simd.h"

namespace AITER_ATTN_NAMESPACE::attention {

inline constexpr int64_t kTileQueries = 128;
inline constexpr int64_t kTileKeys = 128;

// The keys of a tile that are seen.
inline KeyRange common(KeyRange seen, KeyRange tile) {
  const int64_t begin = std::clamp(seen.begin, tile.begin, tile.end);
  return {begin, std::clamp(seen.end, begin, tile.end)};
}

// Calls work(tile) for the tiles that the queries [first, first + count) see keys of, in order.
template <typename Work>
void for_each_tile(const Sequence& s, int64_t first, int64_t count, Work&& work) {
  // Windows move on from query to query.
  const int64_t begin = s.visible(first).begin, end = s.visible(first + count - 1).end;
  for (int64_t j = begin / kTileKeys * kTileKeys; j < end; j += kTileKeys) {
    work(KeyRange{j, std::min(j + kTileKeys, s.keys)});
  }
}

// Rows of scores that stay in the nearest cache until they are used. Kernels of loops().multiply
// take as many rows, or a divisor of it.
inline constexpr int64_t kNearQueries = 12;

// Calls work(first, count) for the `queries` of a tile, kNearQueries at a time.
template <typename Work>
void for_queries_nearby(int64_t queries, Work&& work) {
  for (int64_t r = 0; r < queries; r += kNearQueries) work(r, std::min(kNearQueries, queries - r));
}

// Rows of c from `row` on = those of a times all of b's rows, of its columns those from `column`
// on.
inline void multiply(const Matrix& a, int64_t row, int64_t rows, int64_t depth, const Panels& b,
                     int64_t column, int64_t columns, Matrix* c) {
  loops().multiply({a.row(row), a.step(), 1, b.at(0, column), b.step(), c->row(row), c->step(),
                    rows, depth, columns, false});
}

// c += a * b, of b the rows from `row` on.
inline void add_product(const Matrix& a, int64_t rows, int64_t depth, const Panels& b, int64_t row,
                        Matrix* c) {
  loops().multiply({a.row(0), a.step(), 1, b.at(row, 0), b.step(), c->row(0), c->step(), rows,
                    depth, b.columns(), true});
}

// Rows of c from `row` on += a^T * b.
inline void add_transposed_product(const Matrix& a, int64_t rows, int64_t depth, const Panels& b,
                                   Matrix* c, int64_t row) {
  loops().multiply({a.row(0), 1, a.step(), b.at(0, 0), b.step(), c->row(row), c->step(), rows,
                    depth, b.columns(), true});
}

}  // namespace AITER_ATTN_NAMESPACE::attention
