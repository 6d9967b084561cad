// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "aiter/attention/reference/dropout.h"
#include "aiter/attention/reference/elements.h"
#include "aiter/attention/reference/heads.h"
#include "aiter/attention/reference/matrix.h"
#include "aiter/attention/reference/reference.h"
#include "aiter/attention/reference/scores.h"
#include "aiter/attention/reference/sequence.h"
#include "aiter/runtime/parallel.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

void fill_with_zero(const Problem& p, const Sequence& s, int64_t key_head, runtime::Pulse& pulse) {
  const std::vector<double> zero(std::max(p.head_size_qk, p.head_size_v));
  for (int64_t j = 0; j < s.keys; ++j) {
    store_row(p.dk, p.dtype, s.key_row(p.dk, key_head, j), p.head_size_qk, zero.data());
    store_row(p.dv, p.dtype, s.key_row(p.dv, key_head, j), p.head_size_v, zero.data());
    pulse(int64_t{p.head_size_qk} + p.head_size_v);
  }
}

// One key head of one batch entry: its dk and dv, and dq of all query heads that share it. Like the
// GPU kernels it takes the softmax from lse, and delta from o and dout.
void backward_key_head(const Problem& p, const Sequence& s, int64_t key_head,
                       runtime::Pulse& pulse) {
  if (s.queries == 0) return fill_with_zero(p, s, key_head, pulse);
  const int64_t size_qk = p.head_size_qk, size_v = p.head_size_v;
  const int64_t group = p.heads_q / p.heads_k;
  Matrix k(s.keys, size_qk), k_transposed(size_qk, s.keys), v_transposed(size_v, s.keys);
  Matrix dk(s.keys, size_qk), dv(s.keys, size_v);
  for (int64_t j = 0; j < s.keys; ++j) {
    const int64_t k_row = s.key_row(p.k, key_head, j);
    load_row(p.k, p.dtype, k_row, size_qk, k.row(j));
    load_row(p.k, p.dtype, k_row, size_qk, k_transposed.row(0) + j, s.keys);
    load_row(p.v, p.dtype, s.key_row(p.v, key_head, j), size_v, v_transposed.row(0) + j, s.keys);
    pulse(2 * size_qk + size_v);
  }

  std::vector<double> q(size_qk), dq(size_qk), o(size_v), dout(size_v), score(s.keys), dp(s.keys);
  std::vector<double> product(s.keys), dbias(p.bias_grad ? p.seqlen_k : 0);
  for (int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
    Scores scores(p, s, head);
    const Dropout dropout(p, s.batch, head);
    for (int64_t i = 0; i < s.queries; ++i) {
      const double lse = p.lse[s.lse(head, i)];
      dq.assign(dq.size(), 0);
      dbias.assign(dbias.size(), 0);
      // A row without keys has no gradient.
      if (lse != -std::numeric_limits<double>::infinity()) {
        load_row(p.q, p.dtype, s.query_row(p.q, head, i), size_qk, q.data());
        load_row(p.o, p.dtype, s.query_row(p.o, head, i), size_v, o.data());
        load_row(p.dout, p.dtype, s.query_row(p.dout, head, i), size_v, dout.data());
        double delta = 0;
        for (int64_t c = 0; c < size_v; ++c) delta += o[c] * dout[c];
        in_parts(s.visible(i), 3 * size_qk + 2 * size_v, pulse, [&](int64_t begin, int64_t end) {
          multiply(q.data(), size_qk, k_transposed, score.data(), begin, end);
          multiply(dout.data(), size_v, v_transposed, dp.data(), begin, end);
          std::copy(score.begin() + begin, score.begin() + end, product.begin() + begin);
          scores.finish(i, begin, end, score.data());
          for (int64_t j = begin; j < end; ++j) {
            const double weight = std::exp(score[j] - lse);
            const double kept = dropout.keeps(i, j) ? dropout.factor() : 0;
            const double dscore = weight * (kept * dp[j] - delta);
            if (p.bias_grad) dbias[j] = dscore;
            const double ds = p.softmax_scale * dscore * scores.slope(p.softmax_scale * product[j]);
            add_scaled(ds, k.row(j), dq.data(), 0, size_qk);
            add_scaled(ds, q.data(), dk.row(j), 0, size_qk);
            add_scaled(weight * kept, dout.data(), dv.row(j), 0, size_v);
          }
        });
      }
      store_row(p.dq, p.dtype, s.query_row(p.dq, head, i), size_qk, dq.data());
      if (p.bias_grad) {
        store_row(p.dbias, p.dtype, s.query_row(p.dbias, head, i), p.seqlen_k, dbias.data());
      }
      pulse(2 * (size_qk + size_v));
    }
  }

  for (int64_t j = 0; j < s.keys; ++j) {
    store_row(p.dk, p.dtype, s.key_row(p.dk, key_head, j), size_qk, dk.row(j));
    store_row(p.dv, p.dtype, s.key_row(p.dv, key_head, j), size_v, dv.row(j));
    pulse(size_qk + size_v);
  }
}

}  // namespace

void reference_bwd(const Problem& p) {
  const double steps = 4.0 * query_rows(p) * p.heads_q * p.seqlen_k * p.head_size_qk;
  for_each_head(p, p.heads_k, steps, backward_key_head);
}

}  // namespace AITER_ATTN_NAMESPACE::attention
