// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The gradients of scores, a tile after the other. Like the GPU kernels they take the softmax from
// lse, and delta from o and dout.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "aiter/attention/problem/problem.h"
#include "aiter/attention/reference/dropout.h"
#include "aiter/attention/reference/elements.h"
#include "aiter/attention/reference/matrix.h"
#include "aiter/attention/reference/scores.h"
#include "aiter/attention/reference/sequence.h"
#include "aiter/attention/reference/simd.h"
#include "aiter/attention/reference/tiles.h"
#include "aiter/runtime/parallel.h"

namespace AITER_ATTN_NAMESPACE::attention {

// k and v of a key head of one batch entry, by columns.
struct KeyColumns {
  KeyColumns(const Problem& p, const Sequence& s, int64_t key_head, runtime::Pulse& pulse)
      : k(p.head_size_qk, s.keys), v(p.head_size_v, s.keys) {
    for (int64_t j = 0; j < s.keys; ++j) {
      load_column(p.k, p.dtype, s.key_row(p.k, key_head, j), p.head_size_qk, k.at(0, j));
      load_column(p.v, p.dtype, s.key_row(p.v, key_head, j), p.head_size_v, v.at(0, j));
      pulse(int64_t{p.head_size_qk} + p.head_size_v);
    }
  }

  Panels k, v;
};

// Of one head of one batch entry, up to `most` queries at a time.
class ScoreGradients {
 public:
  ScoreGradients(const Problem& p, const Sequence& s, int64_t head, const KeyColumns& keys,
                 int64_t most)
      : p_(p),
        s_(s),
        head_(head),
        keys_(keys),
        scores_(p, s, head),
        dropout_(p, s.batch, head),
        q_(most, p.head_size_qk),
        dout_(most, p.head_size_v),
        weight_(most, std::min(kTileKeys, s.keys)),
        dscore_(most, std::min(kTileKeys, s.keys)),
        slope_(p.logits_soft_cap > 0 ? most : 0, std::min(kTileKeys, s.keys)),
        lse_(most),
        delta_(most) {}

  // Makes the queries [first, first + count) those that the others are about.
  void load(int64_t first, int64_t count) {
    first_ = first;
    count_ = count;
    std::vector<double> o(p_.head_size_v);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t i = first + r;
      double* const dout = dout_.row(r);
      scores_.load_query(i, q_.row(r));
      load_row(p_.dout, p_.dtype, s_.query_row(p_.dout, head_, i), p_.head_size_v, dout);
      load_row(p_.o, p_.dtype, s_.query_row(p_.o, head_, i), p_.head_size_v, o.data());
      lse_[r] = p_.lse[s_.lse(head_, i)];
      delta_[r] = 0;
      for (int32_t c = 0; c < p_.head_size_v; ++c) delta_[r] += o[c] * dout[c];
    }
  }

  // The keys of a tile that the query in row r sees, none where its lse is -inf.
  KeyRange seen(int64_t r, KeyRange tile) const {
    if (lse_[r] == -std::numeric_limits<double>::infinity()) return {tile.begin, tile.begin};
    return common(s_.visible(first_ + r), tile);
  }

  // Computes the matrices below for a tile. They are 0 where a key is not seen.
  void compute(KeyRange tile) {
    const int64_t columns = in_panels(tile.end - tile.begin);
    for_queries_nearby(count_, [&](int64_t first, int64_t count) {
      multiply(q_, first, count, p_.head_size_qk, keys_.k, tile.begin, columns, &weight_);
      multiply(dout_, first, count, p_.head_size_v, keys_.v, tile.begin, columns, &dscore_);
      for (int64_t r = first; r < first + count; ++r) compute(r, tile, columns);
    });
  }

  // The weights of v.
  const Matrix& weight() const { return weight_; }
  // The gradients of scores; after the next, of the scaled products of q and k.
  const Matrix& dscore() const { return dscore_; }
  void differentiate(KeyRange tile) {
    if (p_.logits_soft_cap == 0) return;
    for (int64_t r = 0; r < count_; ++r) {
      for (int64_t j = 0; j < tile.end - tile.begin; ++j) dscore_.row(r)[j] *= slope_.row(r)[j];
    }
  }

 private:
  void compute(int64_t r, KeyRange tile, int64_t count) {
    const int64_t i = first_ + r;
    const KeyRange seen = this->seen(r, tile);
    double* const weight = weight_.row(r);
    double* const dscore = dscore_.row(r);
    if (p_.logits_soft_cap > 0) {
      std::copy(weight, weight + count, slope_.row(r));
      scores_.differentiate(count, slope_.row(r));
    }
    scores_.finish(i, tile, weight);
    double kept[kTileKeys];
    if (dropout_.drops()) {
      for (int64_t j = seen.begin; j < seen.end; ++j) {
        kept[j - tile.begin] = dropout_.keeps(i, j) ? dropout_.factor() : 0;
        dscore[j - tile.begin] *= kept[j - tile.begin];
      }
    }
    loops().gradients(weight, dscore, count, lse_[r], delta_[r]);
    if (dropout_.drops()) {
      for (int64_t j = seen.begin - tile.begin; j < seen.end - tile.begin; ++j) {
        weight[j] *= kept[j];
      }
    }
    for (double* const row : {weight, dscore}) {
      std::fill(row, row + (seen.begin - tile.begin), 0);
      std::fill(row + (seen.end - tile.begin), row + count, 0);
    }
    if (p_.logits_soft_cap > 0) {
      // Else 0 times what is not a number.
      double* const slope = slope_.row(r);
      std::fill(slope, slope + (seen.begin - tile.begin), 0);
      std::fill(slope + (seen.end - tile.begin), slope + count, 0);
    }
  }

  const Problem& p_;
  const Sequence& s_;
  const int64_t head_;
  const KeyColumns& keys_;
  const Scores scores_;
  const Dropout dropout_;
  Matrix q_, dout_, weight_, dscore_, slope_;
  std::vector<double> lse_, delta_;
  int64_t first_ = 0, count_ = 0;
};

}  // namespace AITER_ATTN_NAMESPACE::attention
