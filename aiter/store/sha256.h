// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4).
#pragma once

#include <cstddef>
#include <string>

namespace aiter_attn {

// The digest of size bytes at data, as 64 lower-case hex digits.
std::string sha256_hex(const void* data, size_t size);

}  // namespace aiter_attn
