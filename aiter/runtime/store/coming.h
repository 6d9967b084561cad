// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Kernels that a call has not launched yet, for what is said while one of them is compiled.
#pragma once

#include "aiter/runtime/store/digest.h"

namespace AITER_ATTN_NAMESPACE::runtime {

struct Coming {
  // The number of the call's kernels that are to be compiled beside the one of this key. NULL: not
  // known.
  int (*count)(const void* context, const Digest& beside) = nullptr;
  const void* context = nullptr;
};

// The calling thread's.
inline Coming& thread_coming() {
  static thread_local Coming coming;
  return coming;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
