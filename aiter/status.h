// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The runtime's statuses are the C ABI's.
#pragma once

#include "aiter/attn.h"
#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE {

constexpr attn_status c_status(runtime::Status status) { return static_cast<attn_status>(status); }

static_assert(c_status(runtime::Status::kOk) == ATTN_OK);
static_assert(c_status(runtime::Status::kInvalidArgument) == ATTN_ERROR_INVALID_ARGUMENT);
static_assert(c_status(runtime::Status::kUnsupported) == ATTN_ERROR_UNSUPPORTED);
static_assert(c_status(runtime::Status::kAbiMismatch) == ATTN_ERROR_ABI_MISMATCH);
static_assert(c_status(runtime::Status::kDriver) == ATTN_ERROR_DRIVER);
static_assert(c_status(runtime::Status::kOutOfMemory) == ATTN_ERROR_OUT_OF_MEMORY);
static_assert(c_status(runtime::Status::kCorrupt) == ATTN_ERROR_CORRUPT);
static_assert(c_status(runtime::Status::kInternal) == ATTN_ERROR_INTERNAL);
static_assert(c_status(runtime::Status::kInterrupted) == ATTN_ERROR_INTERRUPTED);

}  // namespace AITER_ATTN_NAMESPACE
