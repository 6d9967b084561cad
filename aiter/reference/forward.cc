// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include "aiter/reference/elements.h"
#include "aiter/reference/matrix.h"
#include "aiter/reference/parallel.h"
#include "aiter/reference/reference.h"
#include "aiter/reference/sequence.h"

namespace aiter_attn {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// All queries of one head of one batch entry.
void forward_head(const attn_fwd_args& args, const Sequence& s, int64_t head) {
  const attn_problem& p = args.problem;
  const int64_t key_head = head / (p.heads_q / p.heads_k);
  Matrix k_transposed(p.head_size_qk, s.keys);
  Matrix v(s.keys, p.head_size_v);
  for (int64_t j = 0; j < s.keys; ++j) {
    load_row(args.k, p.dtype, s.key_row(args.k, key_head, j), p.head_size_qk,
             k_transposed.row(0) + j, s.keys);
    load_row(args.v, p.dtype, s.key_row(args.v, key_head, j), p.head_size_v, v.row(j));
  }

  std::vector<double> q(p.head_size_qk), o(p.head_size_v), score(s.keys);
  for (int64_t i = 0; i < s.queries; ++i) {
    const KeyRange seen = s.visible(i);
    load_row(args.q, p.dtype, s.query_row(args.q, head, i), p.head_size_qk, q.data());
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
    store_row(args.o, p.dtype, s.query_row(args.o, head, i), p.head_size_v, o.data());
    if (args.lse) args.lse[s.lse(head, i)] = static_cast<float>(greatest + std::log(sum));
  }
}

}  // namespace

void reference_fwd(const attn_fwd_args& args, Mode mode) {
  const attn_problem& p = args.problem;
  const double cost = 1.0 * query_rows(p, mode) * p.heads_q * p.seqlen_k * p.head_size_qk;
  parallel_for(int64_t{p.batch} * p.heads_q, cost, [&](int64_t item) {
    const Sequence sequence(p, mode, static_cast<int32_t>(item / p.heads_q));
    forward_head(args, sequence, item % p.heads_q);
  });
}

}  // namespace aiter_attn
