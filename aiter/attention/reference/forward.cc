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
#include "aiter/attention/reference/simd.h"
#include "aiter/attention/reference/tiles.h"
#include "aiter/runtime/parallel.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The keys of one head of one batch entry, by columns, and its values.
struct Keys {
  Keys(const Problem& p, const Sequence& s, int64_t key_head, runtime::Pulse& pulse)
      : k(p.head_size_qk, s.keys), v(s.keys, p.head_size_v) {
    for (int64_t j = 0; j < s.keys; ++j) {
      load_column(p.k, p.dtype, s.key_row(p.k, key_head, j), p.head_size_qk, k.at(0, j));
      if (p.v_layout == ATTN_V_ROWS) {
        load_row(p.v, p.dtype, s.key_row(p.v, key_head, j), p.head_size_v, &v, j);
      }
      pulse(int64_t{p.head_size_qk} + p.head_size_v);
    }
    if (p.v_layout == ATTN_V_COLUMNS) {
      for (int64_t d = 0; d < p.head_size_v; ++d) {
        load_column(p.v, p.dtype, s.value_column(p.v, key_head, d), s.keys, v.at(0, d));
        pulse(s.keys);
      }
    }
    finite = v.is_finite(s.keys);
  }

  Panels k, v;
  bool finite;  // v: 0 times it is 0
};

// Some queries of one head of one batch entry: the softmax of a tile of keys after the other, with
// sums that belong to the greatest score so far.
class Queries {
 public:
  Queries(const Problem& p, const Sequence& s, int64_t head, const Keys& keys, int64_t most)
      : p_(p),
        s_(s),
        head_(head),
        keys_(keys),
        scores_(p, s, head),
        dropout_(p, s.batch, head),
        q_(most, p.head_size_qk),
        score_(most, std::min(kTileKeys, s.keys)),
        o_(most, p.head_size_v),
        greatest_(most),
        sum_(most) {}

  void load(int64_t first, int64_t count) {
    first_ = first;
    count_ = count;
    o_.clear();
    // A score of every query, of a key whose value is 0.
    const double sink = p_.sink ? p_.sink[head_] : -kInfinity;
    std::fill(greatest_.begin(), greatest_.end(), sink);
    // That of a finite sink is its own greatest score, and so 1.
    const double first_term = sink == -kInfinity ? 0 : std::isfinite(sink) ? 1 : kNan;
    std::fill(sum_.begin(), sum_.end(), first_term);
    for (int64_t r = 0; r < count; ++r) {
      scores_.load_query(first + r, q_.row(r));
    }
  }

  void add(KeyRange tile) {
    const int64_t columns = in_panels(tile.end - tile.begin);
    for_queries_nearby(count_, [&](int64_t first, int64_t count) {
      multiply(q_, first, count, p_.head_size_qk, keys_.k, tile.begin, columns, &score_);
      for (int64_t r = first; r < first + count; ++r) weigh(r, tile);
    });
    if (keys_.finite) {
      add_product(score_, count_, tile.end - tile.begin, keys_.v, tile.begin, &o_);
    } else {
      add_what_is_seen(tile);
    }
  }

  void store() {
    for (int64_t r = 0; r < count_; ++r) {
      const int64_t i = first_ + r;
      double* const o = o_.row(r);
      const double factor = sum_[r] == 0 ? 0 : dropout_.factor() * output_scale(p_) / sum_[r];
      for (int64_t c = 0; c < p_.head_size_v; ++c) o[c] *= factor;
      store_row(p_.o, dtype_of_o(p_), s_.query_row(p_.o, head_, i), p_.head_size_v, o);
      if (p_.lse) {
        p_.lse[s_.lse(head_, i)] = static_cast<float>(shift(greatest_[r]) + std::log(sum_[r]));
      }
    }
  }

 private:
  // Where every score is -inf, nothing is seen; -inf - -inf would be NaN.
  static double shift(double greatest) { return greatest == -kInfinity ? 0 : greatest; }

  // Scores of a query to weights.
  void weigh(int64_t r, KeyRange tile) {
    const int64_t i = first_ + r, count = in_panels(tile.end - tile.begin);
    double* const row = score_.row(r);
    scores_.finish(i, tile, row);
    const double greatest = loops().greatest(row, count, greatest_[r]);
    if (greatest != greatest_[r]) {
      const double factor = std::exp(greatest_[r] - shift(greatest));
      sum_[r] *= factor;
      for (int64_t c = 0; c < p_.head_size_v; ++c) o_.row(r)[c] *= factor;
      greatest_[r] = greatest;
    }
    sum_[r] += loops().exponentials(row, count, shift(greatest));
    if (!dropout_.drops()) return;
    const KeyRange seen = common(s_.visible(i), tile);
    for (int64_t j = seen.begin; j < seen.end; ++j) {
      if (!dropout_.keeps(i, j)) row[j - tile.begin] = 0;
    }
  }

  // The values of keys that a query does not see, and of those that are dropped, are not to be
  // multiplied, not even by 0.
  void add_what_is_seen(KeyRange tile) {
    for (int64_t r = 0; r < count_; ++r) {
      const KeyRange seen = common(s_.visible(first_ + r), tile);
      for (int64_t j = seen.begin; j < seen.end; ++j) {
        if (!dropout_.keeps(first_ + r, j)) continue;
        keys_.v.add_row(score_.row(r)[j - tile.begin], j, o_.row(r));
      }
    }
  }

  const Problem& p_;
  const Sequence& s_;
  const int64_t head_;
  const Keys& keys_;
  const Scores scores_;
  const Dropout dropout_;
  Matrix q_, score_, o_;
  std::vector<double> greatest_, sum_;
  int64_t first_ = 0, count_ = 0;
};

void forward_head(const Problem& p, const Sequence& s, int64_t head, QueryRange range,
                  runtime::Pulse& pulse) {
  if (s.queries <= p.min_seqlen_q) return;  // left out
  const Keys keys(p, s, head / (p.heads_q / p.heads_k), pulse);
  Queries queries(p, s, head, keys, std::min(kTileQueries, range.end - range.begin));
  for (int64_t first = range.begin; first < range.end; first += kTileQueries) {
    const int64_t count = std::min(kTileQueries, range.end - first);
    queries.load(first, count);
    for_each_tile(s, first, count, [&](KeyRange tile) {
      queries.add(tile);
      pulse(count * (tile.end - tile.begin) * p.head_size_qk);
    });
    queries.store();
    pulse(count * (int64_t{p.head_size_qk} + p.head_size_v));
  }
}

}  // namespace

void reference_fwd(const Problem& p) {
  const double steps = 1.0 * query_rows(p) * p.heads_q * p.seqlen_k * p.head_size_qk;
  const Scratch scratch(p, int64_t{p.head_size_qk} + p.head_size_v);
  HeadWork all = {p.heads_q, steps, scratch};
  all.divisible = true;
  for_each_head(p, all, forward_head);
}

}  // namespace AITER_ATTN_NAMESPACE::attention
