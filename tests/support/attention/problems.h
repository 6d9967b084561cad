// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Problems for tests: contiguous tensors in vectors, and the args that describe them.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "aiter/attention/problem/problem.h"
#include "aiter/attn.h"

namespace AITER_ATTN_NAMESPACE::testing {

using attention::Extents;

struct Shape {
  int32_t batch = 1;
  int32_t heads_q = 1;
  int32_t heads_k = 1;
  int32_t seqlen_q = 1;
  int32_t seqlen_k = 1;
  int32_t head_size_qk = 8;
  int32_t head_size_v = 8;
};

// A batch-mode problem on the CPU, without a mask.
attn_problem make_problem(const Shape& shape, attn_dtype dtype);

// A tensor and the memory it lies in; elements are written and read as double.
class Buffer {
 public:
  Buffer(const Extents& extents, attn_dtype dtype);
  attn_tensor tensor() const;
  const Extents& extents() const { return extents_; }
  void randomise(std::mt19937* random);
  void fill(double value);
  double get(int64_t b, int64_t i, int64_t h, int64_t c) const;
  void set(int64_t b, int64_t i, int64_t h, int64_t c, double value);

 private:
  int64_t offset(int64_t b, int64_t i, int64_t h, int64_t c) const;

  Extents extents_;
  attn_dtype dtype_;
  // Aligned as device memory is.
  struct alignas(16) Block {
    unsigned char bytes[16];
  };
  std::vector<Block> memory_;
};

// All tensors of a forward and a backward pass. The args point into this object, and to its
// problem. With fp8 all scales are 1.
class TestProblem {
 public:
  // cu_seqlens are used in group mode; they are empty in batch mode.
  TestProblem(const Shape& shape, attn_dtype dtype, uint32_t seed = 1,
              std::vector<int32_t> cu_seqlens_q = {}, std::vector<int32_t> cu_seqlens_k = {});
  TestProblem(const TestProblem&) = delete;

  attn_fwd_args fwd();
  attn_bwd_args bwd();
  bool is_group() const { return attention::is_group(problem); }
  // An elementwise bias of random numbers, whose gradient is wanted.
  void add_bias(uint32_t seed = 11);
  // ALiBi's slopes, one for each head of each batch entry.
  void add_slopes();
  // v by columns in the place of v: the same numbers.
  void turn_v();
  // fp8: an o of another dtype.
  void set_o_dtype(attn_dtype dtype);

  std::vector<int32_t> cu_seqlens_q, cu_seqlens_k;
  attn_problem problem;
  Buffer q, k, v, o, dout, dq, dk, dv;
  std::vector<float> lse;
  std::optional<Buffer> bias, dbias;  // [batch][seqlen_q][heads_q][seqlen_k]
  std::vector<float> slopes;
  std::optional<Buffer> v_columns;  // [batch][head_size_v][heads_k][seqlen_k]
  int32_t o_dtype = 0;

 private:
  template <typename Args>
  void set_bias(Args* args);
};

}  // namespace AITER_ATTN_NAMESPACE::testing
