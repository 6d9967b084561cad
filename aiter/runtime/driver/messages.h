// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Messages that all drivers share.
#pragma once

#include <string>

#include "aiter/runtime/error.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {

// A runtime's text, for our messages.
inline std::string foreign(const char* text) { return text ? utf8(text) : "no text"; }

// Throws Status::kInvalidArgument where a caller's device_id is not one of `count`.
inline void require_device(int device, int count) {
  if (device >= 0 && device < count) return;
  fail(Status::kInvalidArgument, Field("device_id"), " is ", device, ", but this machine has ",
       count, " GPU(s): pass 0 to ", count - 1);
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
