// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// SHA-512 (FIPS 180-4), which Ed25519 is defined by.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <utility>

namespace AITER_ATTN_NAMESPACE::runtime {

using Digest512 = std::array<unsigned char, 64>;

// The digest of all the parts, one after the other.
Digest512 sha512(std::initializer_list<std::pair<const void*, size_t>> parts);

}  // namespace AITER_ATTN_NAMESPACE::runtime
