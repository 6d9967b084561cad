// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aiter/runtime/loader.h"

namespace AITER_ATTN_NAMESPACE::runtime {

// The library's loader, one for all kernels and drivers. Throws what library_store() throws.
Loader& library_loader();

}  // namespace AITER_ATTN_NAMESPACE::runtime
