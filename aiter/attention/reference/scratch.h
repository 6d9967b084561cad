// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The memory that the reference computes in.
#pragma once

#include <cstdint>

#include "aiter/attention/problem/problem.h"

namespace AITER_ATTN_NAMESPACE::attention {

// The memory of one piece of the problem's work: the keys of a head, in double.
class Scratch {
 public:
  // columns: of matrices with a row for each key; sums: numbers beside them.
  Scratch(const Problem& problem, int64_t columns, double sums = 0);

  double bytes() const { return bytes_; }

  // Throws Status::kOutOfMemory, naming the sizes, where one piece takes more than this machine
  // has. To ask the system would not do: it promises more than it has, and ends the process later.
  void require() const;

  // The same, once the system has refused memory.
  [[noreturn]] void refuse() const;

 private:
  template <typename... Parts>
  [[noreturn]] void fail_with(Parts&&... parts) const;

  const Problem& p_;
  double bytes_;
};

}  // namespace AITER_ATTN_NAMESPACE::attention
