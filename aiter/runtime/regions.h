// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Regions of memory that strides describe, whether two of them share a byte, and the refusal of
// those that do.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace AITER_ATTN_NAMESPACE::runtime {

// Rows of `width` bytes, at first + the sum over its steps of stride * i, 0 <= i < extent.
struct Region {
  struct Step {
    int64_t stride;  // bytes; may be negative
    int64_t extent;  // at least 1
  };

  const char* name;
  int64_t first;
  int64_t width;
  std::array<Step, 3> steps;
  size_t step_count;
  int64_t begin, end;  // all of it lies in [begin, end)
};

// Addresses of regions are from 0 to this, so that differences and their sums fit into 64 bits.
inline constexpr int64_t kMostAddress = int64_t{1} << 62;

enum class Sharing {
  kNone,
  kSome,
  kUndecided,  // the strides interleave in more ways than it takes the time to try
};

// Whether a and b have a byte in common, to the byte: parts of a buffer may interleave.
Sharing sharing(const Region& a, const Region& b);

// Throws Status::kInvalidArgument where an output of a call shares a byte with anything else of it,
// or may.
void refuse_sharing(const Region& output, const Region& other);

}  // namespace AITER_ATTN_NAMESPACE::runtime
