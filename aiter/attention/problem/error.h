// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Failures, under the names of the runtime.
#pragma once

#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::attention {

using runtime::concat;
using runtime::Error;
using runtime::fail;
using runtime::Field;
using runtime::refuse;
using runtime::Status;

}  // namespace AITER_ATTN_NAMESPACE::attention
