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
void backward_key_head(const Problem& p, const Sequence& s, int64_t key_head,
                       runtime::Pulse& pulse) {
  if (s.queries == 0) return fill_with_zero(p, s, key_head, pulse);
  const int64_t size_qk = p.head_size_qk, size_v = p.head_size_v;
  const int64_t group = p.heads_q / p.heads_k;
  const bool has_dbias = p.bias_grad && p.dbias_sums == 0;
  KeyColumns columns(p, s);
  Matrix k(s.keys, size_qk), dk(s.keys, size_qk), dv(s.keys, size_v);
  for (int64_t j = 0; j < s.keys; ++j) {
    load_row(p.k, p.dtype, s.key_row(p.k, key_head, j), size_qk, k.row(j));
    columns.load(p, s, key_head, j);
    pulse(2 * size_qk + size_v);
  }

  std::vector<double> dq(size_qk), dbias(has_dbias ? p.seqlen_k : 0);
  for (int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
    ScoreGradients gradients(p, s, head, columns);
    for (int64_t i = 0; i < s.queries; ++i) {
      dq.assign(dq.size(), 0);
      dbias.assign(dbias.size(), 0);
      if (gradients.load(i)) {
        in_parts(s.visible(i), 3 * size_qk + 2 * size_v, pulse, [&](int64_t begin, int64_t end) {
          gradients.compute(begin, end);
          for (int64_t j = begin; j < end; ++j) {
            if (has_dbias) dbias[j] = gradients.dscore(j);
            const double dproduct = gradients.dproduct(j);
            add_scaled(dproduct, k.row(j), dq.data(), 0, size_qk);
            add_scaled(dproduct, gradients.q(), dk.row(j), 0, size_qk);
            add_scaled(gradients.weight(j), gradients.dout(), dv.row(j), 0, size_v);
          }
        });
      }
      store_row(p.dq, p.dtype, s.query_row(p.dq, head, i), size_qk, dq.data());
      if (has_dbias) {
        store_row(p.dbias_matrix, p.dtype, s.query_row(p.dbias_matrix, head, i), p.seqlen_k,
                  dbias.data());
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
