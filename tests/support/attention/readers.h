// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The readers of a build's outputs, on any bytes: they refuse them, or read all of them. For tests
// that damage files, and for fuzzers.
#pragma once

#include <cstddef>

namespace AITER_ATTN_NAMESPACE::testing {

// Whether the bytes are a launch table. Where they are, it is read whole: all rows and all that
// they name, and dispatch and explanation of a problem that each row serves, on every arch and an
// unknown one.
bool read_launch_table(const void* data, size_t size);

// Whether the bytes are a pack whose code objects, all of those that its index names, are intact.
bool read_pack(const void* data, size_t size);

}  // namespace AITER_ATTN_NAMESPACE::testing
