// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// From the products of a query with its keys to scores: scale, cap, bias.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "aiter/attention/problem/problem.h"
#include "aiter/attention/reference/elements.h"
#include "aiter/attention/reference/sequence.h"

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
                                         : 0.0),
        bias_(p.bias == ATTN_BIAS_ELEMENTWISE ? s.keys : 0) {}

  // Of query i and the keys [begin, end).
  void finish(int64_t i, int64_t begin, int64_t end, double* score) {
    const double cap = p_.logits_soft_cap;
    for (int64_t j = begin; j < end; ++j) {
      score[j] *= scale_;
      if (cap > 0) score[j] = cap * std::tanh(score[j] / cap);
    }
    if (p_.bias == ATTN_BIAS_ELEMENTWISE) {
      const int64_t row = s_.query_row(p_.bias_matrix, head_, i);
      load_row(p_.bias_matrix, bias_dtype(p_), row + begin, end - begin, bias_.data() + begin);
      for (int64_t j = begin; j < end; ++j) score[j] += bias_[j];
    } else if (p_.bias == ATTN_BIAS_ALIBI) {
      const bool causal = is_causal(p_);
      const int64_t diagonal = s_.diagonal(i);
      for (int64_t j = begin; j < end; ++j) {
        score[j] += alibi_ * static_cast<double>(causal ? j : -std::abs(j - diagonal));
      }
    }
  }

  // The derivative of a score by its scaled product.
  double slope(double scaled_product) const {
    const double cap = p_.logits_soft_cap;
    if (cap == 0) return 1;
    const double capped = std::tanh(scaled_product / cap);
    return 1 - capped * capped;
  }

 private:
  const Problem& p_;
  const Sequence& s_;
  const int64_t head_;
  const double scale_;
  const double alibi_;
  std::vector<double> bias_;
};

}  // namespace AITER_ATTN_NAMESPACE::attention
