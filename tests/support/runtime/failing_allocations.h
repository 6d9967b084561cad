// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// An operator new that fails when it is told to. A program that links this has it everywhere.
#pragma once

#include <cstdint>

namespace AITER_ATTN_NAMESPACE::testing {

// In its scope one allocation of this thread fails: the n-th from here on, n at least 1.
class FailingAllocation {
 public:
  explicit FailingAllocation(int64_t n);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;
  // Whether it was reached.
  bool has_failed() const;
};

}  // namespace AITER_ATTN_NAMESPACE::testing
