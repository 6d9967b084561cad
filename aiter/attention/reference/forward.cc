// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/reference/forward.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "aiter/attention/reference/dropout.h"
#include "aiter/attention/reference/elements.h"
#include "aiter/attention/reference/heads.h"
#include "aiter/attention/reference/matrix.h"
#include "aiter/attention/reference/scores.h"
#include "aiter/attention/reference/sequence.h"
#include "aiter/runtime/parallel.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// All queries of one head of one batch entry.
void forward_head(const Problem& p, const Sequence& s, int64_t head, runtime::Pulse& pulse) {
  if (s.queries <= p.min_seqlen_q) return;  // left out
  const int64_t key_head = head / (p.heads_q / p.heads_k);
  const int64_t size_qk = p.head_size_qk, size_v = p.head_size_v;
  Matrix k_transposed(size_qk, s.keys);
  Matrix v(s.keys, size_v);
  for (int64_t j = 0; j < s.keys; ++j) {
    load_row(p.k, p.dtype, s.key_row(p.k, key_head, j), size_qk, k_transposed.row(0) + j, s.keys);
    if (p.v_layout == ATTN_V_ROWS) {
      load_row(p.v, p.dtype, s.key_row(p.v, key_head, j), size_v, v.row(j));
    }
    pulse(size_qk + size_v);
  }

  if (p.v_layout == ATTN_V_COLUMNS) {
    for (int64_t d = 0; d < size_v; ++d) {
      load_row(p.v, p.dtype, s.value_column(p.v, key_head, d), s.keys, v.row(0) + d, size_v);
      pulse(s.keys);
    }
  }

  // A score of every query, of a key whose value is 0.
  const double sink = p.sink ? p.sink[head] : -kInfinity;
  Scores scores(p, s, head);
  const Dropout dropout(p, s.batch, head);
  std::vector<double> q(size_qk), o(size_v), score(s.keys);
  for (int64_t i = 0; i < s.queries; ++i) {
    const KeyRange seen = s.visible(i);
    load_row(p.q, p.dtype, s.query_row(p.q, head, i), size_qk, q.data());
    double greatest = sink;
    in_parts(seen, size_qk, pulse, [&](int64_t begin, int64_t end) {
      multiply(q.data(), size_qk, k_transposed, score.data(), begin, end);
      scores.finish(i, begin, end, score.data());
      for (int64_t j = begin; j < end; ++j) greatest = std::max(greatest, score[j]);
    });
    // Where every score is -inf, nothing is seen; -inf - -inf would be NaN.
    if (greatest == -kInfinity) greatest = 0;

    double sum = std::exp(sink - greatest);
    o.assign(o.size(), 0);
    in_parts(seen, size_v, pulse, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) {
        const double weight = std::exp(score[j] - greatest);
        sum += weight;
        if (dropout.drops() && !dropout.keeps(i, j)) continue;
        add_scaled(weight, v.row(j), o.data(), 0, size_v);
      }
    });
    if (sum == 0) {
      o.assign(o.size(), 0);
    } else {
      for (double& value : o) value *= dropout.factor() * output_scale(p) / sum;
    }
    store_row(p.o, dtype_of_o(p), s.query_row(p.o, head, i), size_v, o.data());
    if (p.lse) p.lse[s.lse(head, i)] = static_cast<float>(greatest + std::log(sum));
    pulse(size_qk + size_v);
  }
}

}  // namespace

void reference_fwd(const Problem& p) {
  const double steps = 1.0 * query_rows(p) * p.heads_q * p.seqlen_k * p.head_size_qk;
  const Scratch scratch(p, int64_t{p.head_size_qk} + p.head_size_v);
  for_each_head(p, {p.heads_q, steps, scratch}, forward_head);
}

}  // namespace AITER_ATTN_NAMESPACE::attention
