// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The means by which a caller stops a computation: attn_set_interrupt of aiter/attn.h.
#pragma once

namespace AITER_ATTN_NAMESPACE::runtime {

struct Interrupt {
  int (*poll)(void* context) = nullptr;  // NULL: never
  void* context = nullptr;
};

// The calling thread's.
Interrupt& thread_interrupt();

// Asks it. Throws Status::kInterrupted where it says so.
void check_interrupt();

}  // namespace AITER_ATTN_NAMESPACE::runtime
