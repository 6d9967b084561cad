// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "tests/support/runtime/failing_allocations.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local int64_t allocations_left = 0;  // until one fails; 0: none does

}  // namespace

void* operator new(size_t size, const std::nothrow_t&) noexcept {
  if (allocations_left > 0 && --allocations_left == 0) return nullptr;
  return std::malloc(size ? size : 1);
}
void* operator new(size_t size) {
  void* const memory = operator new(size, std::nothrow);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace AITER_ATTN_NAMESPACE::testing {

FailingAllocation::FailingAllocation(int64_t n) { allocations_left = n; }
FailingAllocation::~FailingAllocation() { allocations_left = 0; }
bool FailingAllocation::has_failed() const { return allocations_left == 0; }

}  // namespace AITER_ATTN_NAMESPACE::testing
