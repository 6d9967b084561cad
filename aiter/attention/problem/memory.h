// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Validation's second half, of any pass: tensors, lse and workspace are there, aligned,
// addressable, and no output shares a byte with anything else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "aiter/attention/problem/operands.h"
#include "aiter/attention/problem/pass.h"
#include "aiter/attention/problem/problem.h"
#include "aiter/attn.h"
#include "aiter/runtime/regions.h"

namespace AITER_ATTN_NAMESPACE::attention {

// All memory of a pass, and which of it is written.
class Memory {
 public:
  explicit Memory(const Problem& problem) : p_(problem) {}

  void add(const char* name, bool is_output, const attn_tensor& tensor,
           const Dimensions& dimensions, int64_t head_size, size_t element_size);
  // Contiguous, of as many bytes as the product of the factors.
  void add(const char* name, bool is_output, const void* data,
           std::initializer_list<int64_t> factors);
  void add_lengths();

  void validate_sharing() const;
  // With that of another pass, which may read the tensors that this one writes.
  void validate_sharing(const Memory& next) const;

 private:
  // begin and end are of what the steps add to `first`.
  void add(runtime::Region region, bool is_output, const void* data, int64_t width);

  // Operands, lse, two cu_seqlens, workspace, slopes or two tables, random state, arrays of a
  // cache.
  static constexpr size_t kMost = 21;

  const Problem& p_;
  std::array<runtime::Region, kMost> regions_;
  std::array<bool, kMost> is_output_;
  size_t count_ = 0;
};

// The problem is validated, and its most_parts is that of this build. Throws kInvalidArgument.
void validate_memory(const Problem& problem, Pointers pointers);

// Throws kInvalidArgument where a pass ahead of another of the same call writes to memory that is
// not the same tensor there.
void validate_apart(const Problem& first, const Problem& next);

}  // namespace AITER_ATTN_NAMESPACE::attention
