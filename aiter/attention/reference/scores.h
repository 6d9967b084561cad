// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// From the products of a query with its keys to scores: scale, cap, bias. The scale is in the
// query.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "aiter/attention/problem/problem.h"
#include "aiter/attention/reference/elements.h"
#include "aiter/attention/reference/sequence.h"
#include "aiter/attention/reference/simd.h"
#include "aiter/attention/reference/tiles.h"

namespace AITER_ATTN_NAMESPACE::attention {

// Of one head of one batch entry.
class Scores {
 public:
  Scores(const Problem& p, const Sequence& s, int64_t head)
      : p_(p),
        s_(s),
        head_(head),
        scale_(score_scale(p)),
        alibi_(p.bias == ATTN_BIAS_ALIBI ? p.alibi_slopes[s.batch * p.alibi_stride_batch + head]
                                         : 0.0) {}

  // Query i, times the scale.
  void load_query(int64_t i, double* row) const {
    load_row(p_.q, p_.dtype, s_.query_row(p_.q, head_, i), p_.head_size_qk, row);
    for (int32_t c = 0; c < p_.head_size_qk; ++c) row[c] *= scale_;
  }

  // Of query i and the keys of a tile: those that it does not see get -inf, as does the room behind
  // the last one.
  void finish(int64_t i, KeyRange tile, double* row) const {
    constexpr double kNotSeen = -std::numeric_limits<double>::infinity();
    const int64_t count = in_panels(tile.end - tile.begin);
    const KeyRange seen = common(s_.visible(i), tile);
    if (p_.logits_soft_cap > 0) loops().cap(row, count, p_.logits_soft_cap);
    if (p_.bias == ATTN_BIAS_ELEMENTWISE) {
      double bias[kTileKeys];
      load_row(p_.bias_matrix, bias_dtype(p_), s_.query_row(p_.bias_matrix, head_, i) + seen.begin,
               seen.end - seen.begin, bias);
      for (int64_t j = seen.begin; j < seen.end; ++j) row[j - tile.begin] += bias[j - seen.begin];
    } else if (p_.bias == ATTN_BIAS_ALIBI) {
      const bool causal = is_causal(p_);
      const int64_t diagonal = s_.diagonal(i);
      for (int64_t j = seen.begin; j < seen.end; ++j) {
        row[j - tile.begin] += alibi_ * static_cast<double>(causal ? j : -std::abs(j - diagonal));
      }
    }
    std::fill(row, row + (seen.begin - tile.begin), kNotSeen);
    std::fill(row + (seen.end - tile.begin), row + count, kNotSeen);
  }

  // Scaled products to the derivatives of scores by them.
  void differentiate(int64_t count, double* row) const {
    const double cap = p_.logits_soft_cap;
    loops().cap(row, count, cap);
    for (int64_t j = 0; j < count; ++j) row[j] = 1 - row[j] / cap * (row[j] / cap);
  }

 private:
  const Problem& p_;
  const Sequence& s_;
  const int64_t head_;
  const double scale_;
  const double alibi_;
};

}  // namespace AITER_ATTN_NAMESPACE::attention
