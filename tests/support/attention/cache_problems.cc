// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "tests/support/attention/cache_problems.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

namespace AITER_ATTN_NAMESPACE::testing {

using namespace attention;
namespace {

constexpr int32_t kNowhere = 1 << 30;  // where a table says nothing

// More than sequences or pages need.
int32_t entries_of(const CacheShape& shape) {
  const auto batch = static_cast<int32_t>(shape.lengths.size());
  if (shape.storage == Storage::kInPlace) return shape.cu_seqlens_q.empty() ? batch + 2 : batch;
  const int32_t size = shape.storage == Storage::kPages ? shape.page_size : 1;
  int32_t pages = 3;
  for (const int32_t length : shape.lengths) pages += (length + size - 1) / size;
  return pages;
}

Extents extents_of(const CacheShape& shape, const attn_problem& p, int32_t head_size) {
  if (shape.storage != Storage::kInPlace) {
    const int32_t size = shape.storage == Storage::kPages ? shape.page_size : 1;
    return {entries_of(shape), size, p.heads_k, head_size, size};
  }
  if (p.mode == ATTN_MODE_GROUP) return {1, p.total_k, p.heads_k, head_size, p.seqlen_k};
  return {entries_of(shape), p.seqlen_k, p.heads_k, head_size, p.seqlen_k};
}

}  // namespace

attn_problem CacheProblem::problem_of(const CacheShape& shape, attn_dtype dtype) {
  const bool group = !shape.cu_seqlens_q.empty();
  attn_problem p = make_problem(shape.shape, dtype);
  p.batch = static_cast<int32_t>(shape.lengths.size());
  p.seqlen_k = *std::max_element(shape.lengths.begin(), shape.lengths.end());
  // Room for more than is in use.
  if (shape.storage == Storage::kInPlace && !group) p.seqlen_k += 3;
  if (shape.storage == Storage::kPages) {
    p.seqlen_k = (p.seqlen_k / shape.page_size + 2) * shape.page_size;
  }
  if (!group) return p;
  p.mode = ATTN_MODE_GROUP;
  p.total_q = shape.cu_seqlens_q.back();
  p.seqlen_q = 0;
  for (size_t b = 1; b < shape.cu_seqlens_q.size(); ++b) {
    p.seqlen_q = std::max(p.seqlen_q, shape.cu_seqlens_q[b] - shape.cu_seqlens_q[b - 1]);
  }
  if (shape.storage == Storage::kInPlace) {
    p.total_k = std::accumulate(shape.lengths.begin(), shape.lengths.end(), 0);
  }
  return p;
}

CacheProblem::CacheProblem(const CacheShape& shape, attn_dtype dtype, uint32_t seed)
    : lengths(shape.lengths),
      cu_seqlens_q(shape.cu_seqlens_q),
      problem(problem_of(shape, dtype)),
      cache{},
      q(query_extents(problem, problem.head_size_qk), dtype),
      k(extents_of(shape, problem, problem.head_size_qk), dtype),
      v(extents_of(shape, problem, problem.head_size_v), dtype),
      o(query_extents(problem, problem.head_size_v), dtype),
      lse(query_rows(problem) * problem.heads_q),
      places_(lengths.size()) {
  cache.struct_size = sizeof(cache);
  cache.entries = entries_of(shape);
  if (!cu_seqlens_q.empty()) problem.cu_seqlens_q = cu_seqlens_q.data();
  std::mt19937 random(seed);
  q.randomise(&random);
  o.fill(std::numeric_limits<double>::quiet_NaN());
  shape.storage == Storage::kInPlace ? place(shape, seed) : place_in_pages(shape, seed);
  std::normal_distribution<double> normal;
  for (Buffer* t : {&k, &v}) {
    t->fill(std::numeric_limits<double>::quiet_NaN());
    for (const auto& sequence : places_) {
      for (const auto& [entry, row] : sequence) {
        for (int64_t h = 0; h < t->extents().heads; ++h) {
          for (int64_t c = 0; c < t->extents().head_size; ++c) {
            t->set(entry, row, h, c, normal(random));
          }
        }
      }
    }
  }
}

void CacheProblem::place(const CacheShape& shape, uint32_t seed) {
  const auto batch = static_cast<int32_t>(lengths.size());
  const bool group = !shape.cu_seqlens_q.empty();
  cu_seqlens_k.push_back(0);
  std::vector<int32_t> order(cache.entries);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  for (int32_t b = 0; b < batch; ++b) {
    const int32_t start = cu_seqlens_k.back();
    for (int32_t j = 0; j < lengths[b]; ++j) {
      places_[b].push_back(group ? std::pair<int64_t, int64_t>(0, start + j)
                                 : std::pair<int64_t, int64_t>(order[b], j));
    }
    cu_seqlens_k.push_back(start + lengths[b]);
  }
  if (group) {
    problem.cu_seqlens_k = cu_seqlens_k.data();
    return;
  }
  batch_index.assign(order.begin(), order.begin() + batch);
  cache.batch_index = batch_index.data();
  cache.seqlens_k = lengths.data();
}

void CacheProblem::place_in_pages(const CacheShape& shape, uint32_t seed) {
  const bool list = shape.storage == Storage::kPageList;
  const int32_t size = list ? 1 : shape.page_size;
  const int32_t room = list ? 0 : problem.seqlen_k / size;
  cache.page_size = size;
  std::vector<int32_t> order(cache.entries);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  auto next = order.begin();
  block_table.assign(lengths.size() * room, kNowhere);
  page_indptr.push_back(0);
  for (size_t b = 0; b < lengths.size(); ++b) {
    for (int32_t j = 0; j < lengths[b]; ++j) {
      if (j % size == 0 && list) page_indices.push_back(*next++);
      if (j % size == 0 && !list) block_table[b * room + j / size] = *next++;
      places_[b].push_back({*(next - 1), j % size});
    }
    page_indptr.push_back(static_cast<int32_t>(page_indices.size()));
  }
  if (list) {
    cache.page_indptr = page_indptr.data();
    cache.page_indices = page_indices.data();
  } else {
    cache.block_table = block_table.data();
    cache.block_table_stride = room;
    cache.seqlens_k = lengths.data();
  }
}

void CacheProblem::add_slopes() {
  problem.bias = ATTN_BIAS_ALIBI;
  for (int i = 0; i < problem.batch * problem.heads_q; ++i) slopes.push_back(0.05f * (i + 1));
}

attn_kvcache_fwd_args CacheProblem::args() {
  attn_kvcache_fwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = &problem;
  args.cache = &cache;
  args.q = q.tensor();
  args.k = k.tensor();
  args.v = v.tensor();
  args.o = o.tensor();
  args.lse = lse.data();
  if (!slopes.empty()) {
    args.alibi_slopes = slopes.data();
    args.alibi_stride_batch = problem.heads_q;
  }
  return args;
}

int64_t CacheProblem::queries(int b) const {
  return cu_seqlens_q.empty() ? problem.seqlen_q : cu_seqlens_q[b + 1] - cu_seqlens_q[b];
}

double CacheProblem::key(const Buffer& t, int b, int64_t j, int64_t h, int64_t c) const {
  const auto& [entry, row] = places_[b][j];
  return t.get(entry, row, h, c);
}

double CacheProblem::query(const Buffer& t, int b, int64_t i, int64_t h, int64_t c) const {
  return cu_seqlens_q.empty() ? t.get(b, i, h, c) : t.get(0, cu_seqlens_q[b] + i, h, c);
}

float CacheProblem::lse_of(int b, int64_t i, int64_t h) const {
  if (!cu_seqlens_q.empty()) return lse[h * problem.total_q + cu_seqlens_q[b] + i];
  return lse[(int64_t{b} * problem.heads_q + h) * problem.seqlen_q + i];
}

}  // namespace AITER_ATTN_NAMESPACE::testing
