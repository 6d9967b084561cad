// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <new>

#include "aiter/attention/passes/backward/compute.h"
#include "aiter/attention/passes/backward/score_gradients.h"
#include "aiter/attention/reference/elements.h"
#include "aiter/attention/reference/heads.h"
#include "aiter/attention/reference/matrix.h"
#include "aiter/attention/reference/sequence.h"
#include "aiter/attention/reference/tiles.h"
#include "aiter/runtime/parallel.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

struct Range {
  int64_t begin;
  int64_t end;
};

// One piece of the work: entries of dbias, and the scores that they are sums of.
struct Piece {
  int64_t entry;  // of dbias, as the next
  int64_t dbias_head;
  Range batch;
  Range heads;
  Range rows;  // of a batch entry, in group mode of all sequences
};

class Pieces {
 public:
  explicit Pieces(const Problem& p) : p_(p), all_(score_extents(p)), kept_(dbias_extents(p)) {
    const int64_t rows = sums_dbias(p, ATTN_DBIAS_SUM_QUERIES) ? 1 : kSummedQueries;
    blocks_ = (kept_.seq + rows - 1) / rows;
  }
  int64_t count() const { return kept_.batch * kept_.heads * blocks_; }

  Piece operator[](int64_t i) const {
    const int64_t entry = i / blocks_ / kept_.heads;
    const int64_t head = i / blocks_ % kept_.heads;
    Piece piece = {entry, head, {entry, entry + 1}, {head, head + 1}, {0, all_.seq}};
    // In group mode sequences are found by their rows.
    if (is_group(p_)) piece.batch = {0, p_.batch};
    if (sums_dbias(p_, ATTN_DBIAS_SUM_BATCH)) piece.batch = {0, all_.batch};
    if (sums_dbias(p_, ATTN_DBIAS_SUM_HEADS)) piece.heads = {0, all_.heads};
    if (!sums_dbias(p_, ATTN_DBIAS_SUM_QUERIES)) {
      const int64_t first = i % blocks_ * kSummedQueries;
      piece.rows = {first, std::min(first + kSummedQueries, all_.seq)};
    }
    return piece;
  }

 private:
  const Problem& p_;
  const Extents all_, kept_;
  int64_t blocks_;
};

// Adds the gradients of the scores of one head: those of row i to row i - first of the sums, or all
// to one.
void add_head(const Problem& p, const Sequence& s, int64_t head, Range rows, int64_t first,
              Matrix* sums, runtime::Pulse& pulse) {
  const int64_t key_head = head / (p.heads_q / p.heads_k);
  const int64_t size = int64_t{p.head_size_qk} + p.head_size_v;
  const KeyColumns keys(p, s, key_head, pulse);
  ScoreGradients gradients(p, s, head, keys, std::min(kTileQueries, rows.end - rows.begin));
  const bool all_rows = sums_dbias(p, ATTN_DBIAS_SUM_QUERIES);
  for (int64_t i = rows.begin; i < rows.end; i += kTileQueries) {
    const int64_t count = std::min(kTileQueries, rows.end - i);
    gradients.load(i, count);
    pulse(count * size);
    for_each_tile(s, i, count, [&](KeyRange tile) {
      gradients.compute(tile);
      for (int64_t r = 0; r < count; ++r) {
        double* const sum = sums->row(all_rows ? 0 : i + r - first) + tile.begin;
        const double* const dscore = gradients.dscore().row(r);
        for (int64_t j = 0; j < tile.end - tile.begin; ++j) sum[j] += dscore[j];
      }
      pulse(count * (tile.end - tile.begin) * size);
    });
  }
}

void sum_piece(const Problem& p, const Piece& piece, runtime::Pulse& pulse) {
  const bool all_rows = sums_dbias(p, ATTN_DBIAS_SUM_QUERIES);
  const Range rows = piece.rows;
  const int64_t kept_rows = all_rows ? 1 : rows.end - rows.begin;
  Matrix sums(kept_rows, p.seqlen_k);
  int64_t batch = piece.batch.begin;
  if (is_group(p)) {
    // The first sequence that ends behind the first row.
    const int32_t* const ends = p.cu_seqlens_q + 1;
    batch = std::upper_bound(ends, ends + p.batch, rows.begin) - ends;
  }
  // There may be billions of entries without a query.
  for (; query_rows(p) != 0 && batch < piece.batch.end; ++batch) {
    pulse(1);
    const int64_t start = is_group(p) ? p.cu_seqlens_q[batch] : 0;
    if (start >= rows.end) break;
    const Sequence s(p, static_cast<int32_t>(batch));
    const Range own = {std::max<int64_t>(rows.begin - start, 0),
                       std::min(rows.end - start, s.queries)};
    if (own.begin >= own.end || s.keys == 0) continue;
    for (int64_t head = piece.heads.begin; head < piece.heads.end; ++head) {
      add_head(p, s, head, own, rows.begin - start, &sums, pulse);
    }
  }
  for (int64_t i = 0; i < kept_rows; ++i) {
    const int64_t row = all_rows ? 0 : rows.begin + i;
    const attn_tensor& t = p.dbias_matrix;
    const int64_t offset =
        piece.entry * t.stride_batch + row * t.stride_seq + piece.dbias_head * t.stride_head;
    store_row(t, p.dtype, offset, p.seqlen_k, sums.row(i));
    pulse(p.seqlen_k);
  }
}

}  // namespace

void compute_dbias_sums(const Problem& p) {
  if (p.seqlen_k == 0) return;
  const double steps =
      1.0 * query_rows(p) * p.heads_q * p.seqlen_k * (1.0 * p.head_size_qk + p.head_size_v);
  const Pieces pieces(p);
  const Scratch scratch = backward_scratch(p);
  try {
    runtime::parallel_for(
        {pieces.count(), steps, scratch.bytes()},
        [&](int64_t i, runtime::Pulse& pulse) { sum_piece(p, pieces[i], pulse); });
  } catch (const std::bad_alloc&) {
    scratch.refuse();
  }
}

}  // namespace AITER_ATTN_NAMESPACE::attention
