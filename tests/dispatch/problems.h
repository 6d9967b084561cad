// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Random calls of the C ABI, all of them valid.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "aiter/attn.h"
#include "tests/dispatch/upstream.h"

namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity {

// Addresses of tensors. Nothing reads what lies there; a few outputs are filled.
class AddressSpace {
 public:
  AddressSpace();
  void clear() { used_ = 0; }
  // A multiple of 256. Throws std::runtime_error where all are used up.
  void* take(int64_t bytes);

 private:
  char* base_;
  int64_t used_ = 0;
};

// The args' problem is set by who makes the call, as calls may be copied. Strides are those of
// contiguous tensors of either order of sequence and head, also as parts of wider rows.
Forward random_forward(std::mt19937* random, AddressSpace* addresses);
Backward random_backward(std::mt19937* random, AddressSpace* addresses);

// The cache's memory is made up in the same way. Calls whose keys are split, or in place, and calls
// whose keys are in pages and need not be split.
Cached random_split(std::mt19937* random, AddressSpace* addresses);
Cached random_paged(std::mt19937* random, AddressSpace* addresses);
// Calls whose keys are listed one by one.
Cached random_listed(std::mt19937* random, AddressSpace* addresses);
// Calls that put new keys into a cache.
Appended random_appended(std::mt19937* random, AddressSpace* addresses);

std::string describe(const Forward& call);
std::string describe(const Backward& call);
std::string describe(const Cached& call);
std::string describe(const Appended& call);

}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity
