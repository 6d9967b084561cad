// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The error of a call, for tests that look at its status and message.
#pragma once

#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::testing {

// The runtime::Error that the call throws; one of Status::kOk where it throws none.
template <typename Call>
runtime::Error error_of(Call&& call) {
  try {
    call();
  } catch (const runtime::Error& error) {
    return error;
  }
  return runtime::Error(runtime::Status::kOk, "nothing thrown");
}

}  // namespace AITER_ATTN_NAMESPACE::testing
