// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The tensors of a problem, each with its extents and the way a call uses it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "aiter/attention/problem/problem.h"
#include "aiter/attn.h"

namespace AITER_ATTN_NAMESPACE::attention {

// kUpdated: some of it is written, the rest stays.
enum class Access { kRead, kWritten, kUpdated };

struct Operand {
  const char* name;
  attn_tensor Problem::* tensor;
  Extents extents;
  bool has_v_size;  // its head_size is head_size_v
  Access access;
  bool of_scores = false;     // a row is of keys, not of a head
  bool is_unaligned = false;  // kernels take any multiple of its elements

  int64_t element_size(const Problem& p) const {
    if (of_scores) return dtype_size(bias_dtype(p));
    return dtype_size(tensor == &Problem::o ? dtype_of_o(p) : p.dtype);
  }
  bool is_output() const { return access != Access::kRead; }
};

// Iterate over it.
class Operands {
 public:
  void add(const Operand& operand) { all_[count_++] = operand; }
  // Where the problem has an elementwise bias.
  void add_bias(const Problem& p) {
    if (p.bias != ATTN_BIAS_ELEMENTWISE) return;
    add({"bias", &Problem::bias_matrix, score_extents(p), false, Access::kRead, true});
  }
  const Operand* begin() const { return all_.data(); }
  const Operand* end() const { return all_.data() + count_; }

 private:
  std::array<Operand, 10> all_;
  size_t count_ = 0;
};

// Contiguous memory beside operands: of as many bytes as the product of the factors.
struct Array {
  const char* name;
  bool is_output;
  const void* data;
  std::array<int64_t, 3> factors;
};

struct Dimension {
  const char* field;
  int64_t extent;
  int64_t stride;  // elements
};

// The dimensions along which a tensor is stepped through: those with more than one entry.
class Dimensions {
 public:
  Dimensions(const attn_tensor& t, const Extents& e) {
    add({"stride_batch", e.batch, t.stride_batch});
    add({"stride_seq", e.seq, t.stride_seq});
    add({"stride_head", e.heads, t.stride_head});
  }
  const Dimension* begin() const { return all_.data(); }
  const Dimension* end() const { return all_.data() + count_; }
  void sort_by_stride() {
    std::sort(all_.begin(), all_.begin() + count_, [](const Dimension& a, const Dimension& b) {
      return std::abs(a.stride) < std::abs(b.stride);
    });
  }

 private:
  void add(const Dimension& d) {
    if (d.extent > 1) all_[count_++] = d;
  }

  std::array<Dimension, 3> all_;
  size_t count_ = 0;
};

}  // namespace AITER_ATTN_NAMESPACE::attention
