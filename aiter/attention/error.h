// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Failures, under the names of the runtime; their statuses are the C ABI's.
#pragma once

#include <string>
#include <utility>

#include "aiter/attn.h"
#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::attention {

using runtime::concat;
using runtime::Error;
using runtime::fail;
using runtime::Status;

// Refuses the value of a caller's field: the rest says what is allowed.
template <typename Value, typename... Rest>
[[noreturn]] void refuse(const std::string& field, const Value& value, Rest&&... rest) {
  fail(Status::kInvalidArgument, field, " is ", value, ", but ", std::forward<Rest>(rest)...);
}

inline attn_status c_status(Status status) { return static_cast<attn_status>(status); }

static_assert(static_cast<int>(Status::kOk) == ATTN_OK);
static_assert(static_cast<int>(Status::kInvalidArgument) == ATTN_ERROR_INVALID_ARGUMENT);
static_assert(static_cast<int>(Status::kUnsupported) == ATTN_ERROR_UNSUPPORTED);
static_assert(static_cast<int>(Status::kAbiMismatch) == ATTN_ERROR_ABI_MISMATCH);
static_assert(static_cast<int>(Status::kDriver) == ATTN_ERROR_DRIVER);
static_assert(static_cast<int>(Status::kOutOfMemory) == ATTN_ERROR_OUT_OF_MEMORY);
static_assert(static_cast<int>(Status::kCorrupt) == ATTN_ERROR_CORRUPT);
static_assert(static_cast<int>(Status::kInternal) == ATTN_ERROR_INTERNAL);
static_assert(static_cast<int>(Status::kInterrupted) == ATTN_ERROR_INTERRUPTED);

}  // namespace AITER_ATTN_NAMESPACE::attention
