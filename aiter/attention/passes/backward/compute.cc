// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/passes/backward/compute.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "aiter/attention/passes/backward/score_gradients.h"
#include "aiter/attention/reference/elements.h"
#include "aiter/attention/reference/heads.h"
#include "aiter/attention/reference/matrix.h"
#include "aiter/attention/reference/sequence.h"
#include "aiter/attention/reference/tiles.h"
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

// One key head of one batch entry: its dk and dv, and dq of all query heads that share it, with
// their dbias where that is not summed.
class KeyHead {
 public:
  KeyHead(const Problem& p, const Sequence& s, int64_t key_head, runtime::Pulse& pulse)
      : p_(p),
        s_(s),
        pulse_(pulse),
        most_(std::min(kTileQueries, s.queries)),
        columns_(p, s, key_head, pulse),
        k_(s.keys, p.head_size_qk),
        q_(most_, p.head_size_qk),
        dout_(most_, p.head_size_v),
        dk_(s.keys, p.head_size_qk),
        dv_(s.keys, p.head_size_v),
        dq_(most_, p.head_size_qk) {
    for (int64_t j = 0; j < s.keys; ++j) {
      load_row(p.k, p.dtype, s.key_row(p.k, key_head, j), p.head_size_qk, &k_, j);
      pulse(p.head_size_qk);
    }
    k_is_finite_ = k_.is_finite(s.keys);
  }

  void add(int64_t head) {
    ScoreGradients gradients(p_, s_, head, columns_, most_);
    for (int64_t first = 0; first < s_.queries; first += kTileQueries) {
      add(head, first, std::min(kTileQueries, s_.queries - first), &gradients);
    }
  }

  void store(int64_t key_head) {
    for (int64_t j = 0; j < s_.keys; ++j) {
      store_scaled(p_.dk, s_.key_row(p_.dk, key_head, j), dk_.row(j));
      store_row(p_.dv, p_.dtype, s_.key_row(p_.dv, key_head, j), p_.head_size_v, dv_.row(j));
      pulse_(int64_t{p_.head_size_qk} + p_.head_size_v);
    }
  }

 private:
  bool has_dbias() const { return p_.bias_grad && p_.dbias_sums == 0; }

  // The gradient of a row of q or k, from that of its scaled products.
  void store_scaled(const attn_tensor& t, int64_t offset, double* row) const {
    for (int32_t c = 0; c < p_.head_size_qk; ++c) row[c] *= p_.softmax_scale;
    store_row(t, p_.dtype, offset, p_.head_size_qk, row);
  }

  void add(int64_t head, int64_t first, int64_t count, ScoreGradients* gradients) {
    gradients->load(first, count);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t i = first + r;
      load_row(p_.q, p_.dtype, s_.query_row(p_.q, head, i), p_.head_size_qk, &q_, r);
      load_row(p_.dout, p_.dtype, s_.query_row(p_.dout, head, i), p_.head_size_v, &dout_, r);
    }
    const bool finite = k_is_finite_ && q_.is_finite(count) && dout_.is_finite(count);
    dq_.clear();
    if (has_dbias()) clear_dbias(head, first, count);
    for_each_tile(s_, first, count, [&](KeyRange tile) {
      gradients->compute(tile);
      if (has_dbias()) store_dbias(head, first, count, tile, *gradients);
      gradients->differentiate(tile);
      if (finite) {
        add_products(count, tile, *gradients);
      } else {
        add_what_is_seen(count, tile, *gradients);
      }
      pulse_(count * (tile.end - tile.begin) * (3 * p_.head_size_qk + 2 * p_.head_size_v));
    });
    for (int64_t r = 0; r < count; ++r) {
      store_scaled(p_.dq, s_.query_row(p_.dq, head, first + r), dq_.row(r));
    }
    pulse_(2 * count * (int64_t{p_.head_size_qk} + p_.head_size_v));
  }

  void add_products(int64_t count, KeyRange tile, const ScoreGradients& gradients) {
    const int64_t keys = tile.end - tile.begin;
    add_product(gradients.dscore(), count, keys, k_, tile.begin, &dq_);
    add_transposed_product(gradients.dscore(), keys, count, q_, &dk_, tile.begin);
    add_transposed_product(gradients.weight(), keys, count, dout_, &dv_, tile.begin);
  }

  // Rows of keys that a query does not see are not to be multiplied, not even by 0.
  void add_what_is_seen(int64_t count, KeyRange tile, const ScoreGradients& gradients) {
    for (int64_t r = 0; r < count; ++r) {
      const KeyRange seen = gradients.seen(r, tile);
      for (int64_t j = seen.begin; j < seen.end; ++j) {
        const double dscore = gradients.dscore().row(r)[j - tile.begin];
        k_.add_row(dscore, j, dq_.row(r));
        q_.add_row(dscore, r, dk_.row(j));
        dout_.add_row(gradients.weight().row(r)[j - tile.begin], r, dv_.row(j));
      }
    }
  }

  void clear_dbias(int64_t head, int64_t first, int64_t count) {
    const std::vector<double> zero(p_.seqlen_k);
    for (int64_t r = 0; r < count; ++r) {
      store_row(p_.dbias_matrix, p_.dtype, s_.query_row(p_.dbias_matrix, head, first + r),
                p_.seqlen_k, zero.data());
      pulse_(p_.seqlen_k);
    }
  }

  void store_dbias(int64_t head, int64_t first, int64_t count, KeyRange tile,
                   const ScoreGradients& gradients) {
    for (int64_t r = 0; r < count; ++r) {
      store_row(p_.dbias_matrix, p_.dtype,
                s_.query_row(p_.dbias_matrix, head, first + r) + tile.begin, tile.end - tile.begin,
                gradients.dscore().row(r));
    }
  }

  const Problem& p_;
  const Sequence& s_;
  runtime::Pulse& pulse_;
  const int64_t most_;  // queries at a time
  const KeyColumns columns_;
  Panels k_, q_, dout_;
  Matrix dk_, dv_, dq_;
  bool k_is_finite_;
};

void backward_key_head(const Problem& p, const Sequence& s, int64_t key_head, QueryRange,
                       runtime::Pulse& pulse) {
  if (s.queries == 0) return fill_with_zero(p, s, key_head, pulse);
  const int64_t group = p.heads_q / p.heads_k;
  KeyHead all(p, s, key_head, pulse);
  for (int64_t head = key_head * group; head < (key_head + 1) * group; ++head) all.add(head);
  all.store(key_head);
}

}  // namespace

Scratch backward_scratch(const Problem& p) {
  const int64_t columns = int64_t{3} * p.head_size_qk + int64_t{2} * p.head_size_v;
  // Several queries of sums beside each other.
  return Scratch(p, columns, p.dbias_sums ? double{kSummedQueries} * p.seqlen_k : 0);
}

void compute_backward(const Problem& p) {
  const double steps = 4.0 * query_rows(p) * p.heads_q * p.seqlen_k * p.head_size_qk;
  for_each_head(p, {p.heads_k, steps, backward_scratch(p), true}, backward_key_head);
  if (p.dbias_sums) compute_dbias_sums(p);
  if (p.dsink) compute_dsink(p);
}

}  // namespace AITER_ATTN_NAMESPACE::attention
