// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A call of attn_append_kv for tests: a cache with random numbers everywhere, and new keys and
// values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "aiter/attn.h"
#include "tests/support/attention/problems.h"

namespace AITER_ATTN_NAMESPACE::testing {

struct AppendShape {
  Shape shape;  // seqlen_k is the room
  std::vector<int32_t> seqlens_k;
  int32_t seqlen_new = 1;
  int32_t page_size = 0;
  attn_rotary rotary = ATTN_ROTARY_NONE;
  int32_t rotary_size = 0;
};

class AppendProblem {
 public:
  // Entries and pages are given out in a shuffled order, and one more than needed. Seed 0: all
  // numbers are 0, which takes less time.
  AppendProblem(const AppendShape& s, attn_dtype dtype, uint32_t seed = 1)
      : shape(s),
        problem(make_problem(s.shape, dtype)),
        seqlens_k(s.seqlens_k),
        pages_per_sequence(s.page_size == 0 ? 1 : s.shape.seqlen_k / s.page_size),
        order(shuffled(s.shape.batch * pages_per_sequence + 1, seed)),
        k(cache_extents(s.shape.head_size_qk), dtype),
        v(cache_extents(s.shape.head_size_v), dtype),
        q({s.shape.batch, s.shape.seqlen_q, s.shape.heads_q, s.shape.head_size_qk,
           s.shape.seqlen_q},
          dtype),
        k_new(new_extents(s.shape.head_size_qk), dtype),
        v_new(new_extents(s.shape.head_size_v), dtype),
        cos({1, s.shape.seqlen_k, 1, s.rotary_size / 2, s.shape.seqlen_k}, dtype),
        sin(cos.extents(), dtype) {
    if (seed == 0) return;
    std::mt19937 random(seed);
    for (Buffer* buffer : {&k, &v, &q, &k_new, &v_new, &cos, &sin}) buffer->randomise(&random);
  }
  AppendProblem(const AppendProblem&) = delete;

  // They point into this object.
  attn_append_kv_args args() {
    cache = {};
    cache.struct_size = sizeof(cache);
    cache.entries = static_cast<int32_t>(order.size());
    cache.seqlens_k = seqlens_k.data();
    if (shape.page_size == 0) {
      cache.batch_index = order.data();
    } else {
      cache.page_size = shape.page_size;
      cache.block_table = order.data();
      cache.block_table_stride = pages_per_sequence;
    }
    attn_append_kv_args args = {};
    args.struct_size = sizeof(args);
    args.seqlen_new = shape.seqlen_new;
    args.problem = &problem;
    args.cache = &cache;
    args.k = k.tensor();
    args.v = v.tensor();
    args.k_new = k_new.tensor();
    args.v_new = v_new.tensor();
    if (shape.rotary == ATTN_ROTARY_NONE) return args;
    args.q = q.tensor();
    args.rotary = shape.rotary;
    args.rotary_size = shape.rotary_size;
    args.rotary_length = shape.shape.seqlen_k;
    args.rotary_cos = cos.tensor().data;
    args.rotary_sin = sin.tensor().data;
    return args;
  }

  // Where key j of sequence b lies in k and v.
  int64_t entry(int b, int64_t j) const {
    return shape.page_size == 0 ? order[b] : order[b * pages_per_sequence + j / shape.page_size];
  }
  int64_t row(int64_t j) const { return shape.page_size == 0 ? j : j % shape.page_size; }

  AppendShape shape;
  attn_problem problem;
  attn_kvcache cache = {};
  std::vector<int32_t> seqlens_k;
  int32_t pages_per_sequence;
  std::vector<int32_t> order;  // batch_index, or block_table
  Buffer k, v, q, k_new, v_new, cos, sin;

 private:
  static std::vector<int32_t> shuffled(int32_t count, uint32_t seed) {
    std::vector<int32_t> numbers(count);
    for (int32_t i = 0; i < count; ++i) numbers[i] = i;
    std::shuffle(numbers.begin(), numbers.end(), std::mt19937(seed));
    return numbers;
  }
  Extents cache_extents(int32_t head_size) const {
    const int64_t rows = shape.page_size == 0 ? shape.shape.seqlen_k : shape.page_size;
    return {static_cast<int64_t>(order.size()), rows, shape.shape.heads_k, head_size, rows};
  }
  Extents new_extents(int32_t head_size) const {
    return {shape.shape.batch, shape.seqlen_new, shape.shape.heads_k, head_size, shape.seqlen_new};
  }
};

}  // namespace AITER_ATTN_NAMESPACE::testing
