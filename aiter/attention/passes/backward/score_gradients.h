// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The gradients of the scores of one query after the other. Like the GPU kernels they take the
// softmax from lse, and delta from o and dout.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "aiter/attention/problem/problem.h"
#include "aiter/attention/reference/dropout.h"
#include "aiter/attention/reference/elements.h"
#include "aiter/attention/reference/matrix.h"
#include "aiter/attention/reference/scores.h"
#include "aiter/attention/reference/sequence.h"

namespace AITER_ATTN_NAMESPACE::attention {

// k and v of a key head of one batch entry, by columns.
struct KeyColumns {
  KeyColumns(const Problem& p, const Sequence& s)
      : k(p.head_size_qk, s.keys), v(p.head_size_v, s.keys) {}

  void load(const Problem& p, const Sequence& s, int64_t key_head, int64_t j) {
    load_row(p.k, p.dtype, s.key_row(p.k, key_head, j), p.head_size_qk, k.row(0) + j, s.keys);
    load_row(p.v, p.dtype, s.key_row(p.v, key_head, j), p.head_size_v, v.row(0) + j, s.keys);
  }

  Matrix k, v;
};

// Of one head of one batch entry.
class ScoreGradients {
 public:
  ScoreGradients(const Problem& p, const Sequence& s, int64_t head, const KeyColumns& keys)
      : p_(p),
        s_(s),
        head_(head),
        keys_(keys),
        scores_(p, s, head),
        dropout_(p, s.batch, head),
        q_(p.head_size_qk),
        o_(p.head_size_v),
        dout_(p.head_size_v),
        product_(s.keys),
        score_(s.keys),
        dp_(s.keys),
        dscore_(s.keys) {}

  // Makes query i the one that the others are about. False: it sees no key, and has no gradient.
  bool load(int64_t i) {
    i_ = i;
    lse_ = p_.lse[s_.lse(head_, i)];
    if (lse_ == -std::numeric_limits<double>::infinity()) return false;
    load_row(p_.q, p_.dtype, s_.query_row(p_.q, head_, i), p_.head_size_qk, q_.data());
    load_row(p_.o, p_.dtype, s_.query_row(p_.o, head_, i), p_.head_size_v, o_.data());
    load_row(p_.dout, p_.dtype, s_.query_row(p_.dout, head_, i), p_.head_size_v, dout_.data());
    delta_ = 0;
    for (int32_t c = 0; c < p_.head_size_v; ++c) delta_ += o_[c] * dout_[c];
    return true;
  }

  const double* q() const { return q_.data(); }
  const double* dout() const { return dout_.data(); }

  // Computes what the functions below tell of the keys [begin, end).
  void compute(int64_t begin, int64_t end) {
    multiply(q_.data(), p_.head_size_qk, keys_.k, product_.data(), begin, end);
    multiply(dout_.data(), p_.head_size_v, keys_.v, dp_.data(), begin, end);
    std::copy(product_.begin() + begin, product_.begin() + end, score_.begin() + begin);
    scores_.finish(i_, begin, end, score_.data());
    for (int64_t j = begin; j < end; ++j) {
      // In the place of the score: the weight of v.
      const double weight = std::exp(score_[j] - lse_);
      const double kept = dropout_.keeps(i_, j) ? dropout_.factor() : 0;
      dscore_[j] = weight * (kept * dp_[j] - delta_);
      score_[j] = weight * kept;
    }
  }

  double weight(int64_t j) const { return score_[j]; }
  double dscore(int64_t j) const { return dscore_[j]; }
  // Of the product of q and a key.
  double dproduct(int64_t j) const {
    return p_.softmax_scale * dscore_[j] * scores_.slope(p_.softmax_scale * product_[j]);
  }

 private:
  const Problem& p_;
  const Sequence& s_;
  const int64_t head_;
  const KeyColumns& keys_;
  Scores scores_;
  const Dropout dropout_;
  std::vector<double> q_, o_, dout_, product_, score_, dp_, dscore_;
  int64_t i_ = 0;
  double lse_ = 0;
  double delta_ = 0;
};

}  // namespace AITER_ATTN_NAMESPACE::attention
