// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include "aiter/attention/reference/elements.h"
#include "aiter/attention/reference/matrix.h"
#include "aiter/attention/reference/parallel.h"
#include "aiter/attention/reference/reference.h"
#include "aiter/attention/reference/sequence.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// All queries of one head of one batch entry.
void forward_head(const Problem& p, const Sequence& s, int64_t head) {
  const int64_t key_head = head / (p.heads_q / p.heads_k);
  Matrix k_transposed(p.head_size_qk, s.keys);
  Matrix v(s.keys, p.head_size_v);
  for (int64_t j = 0; j < s.keys; ++j) {
    load_row(p.k, p.dtype, s.key_row(p.k, key_head, j), p.head_size_qk, k_transposed.row(0) + j,
             s.keys);
    load_row(p.v, p.dtype, s.key_row(p.v, key_head, j), p.head_size_v, v.row(j));
  }

  std::vector<double> q(p.head_size_qk), o(p.head_size_v), score(s.keys);
  for (int64_t i = 0; i < s.queries; ++i) {
    const KeyRange seen = s.visible(i);
    load_row(p.q, p.dtype, s.query_row(p.q, head, i), p.head_size_qk, q.data());
    multiply(q.data(), p.head_size_qk, k_transposed, score.data(), seen.begin, seen.end);

    double greatest = -kInfinity;
    for (int64_t j = seen.begin; j < seen.end; ++j) {
      score[j] *= p.softmax_scale;
      greatest = std::max(greatest, score[j]);
    }
    // Where every score is -inf, nothing is seen; -inf - -inf would be NaN.
    if (greatest == -kInfinity) greatest = 0;

    double sum = 0;
    o.assign(o.size(), 0);
    for (int64_t j = seen.begin; j < seen.end; ++j) {
      const double weight = std::exp(score[j] - greatest);
      sum += weight;
      add_scaled(weight, v.row(j), o.data(), 0, p.head_size_v);
    }
    if (sum == 0) {
      o.assign(o.size(), 0);
    } else {
      for (double& value : o) value /= sum;
    }
    store_row(p.o, p.dtype, s.query_row(p.o, head, i), p.head_size_v, o.data());
    if (p.lse) p.lse[s.lse(head, i)] = static_cast<float>(greatest + std::log(sum));
  }
}

}  // namespace

void reference_fwd(const Problem& p) {
  const double cost = 1.0 * query_rows(p) * p.heads_q * p.seqlen_k * p.head_size_qk;
  parallel_for(int64_t{p.batch} * p.heads_q, cost, [&](int64_t item) {
    const Sequence sequence(p, static_cast<int32_t>(item / p.heads_q));
    forward_head(p, sequence, item % p.heads_q);
  });
}

}  // namespace AITER_ATTN_NAMESPACE::attention
