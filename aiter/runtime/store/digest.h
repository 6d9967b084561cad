// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4), and its digests as text.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace AITER_ATTN_NAMESPACE::runtime {

using Digest = std::array<unsigned char, 32>;

// The digest of size bytes at data.
Digest sha256(const void* data, size_t size);

// 64 lower-case hex digits.
std::string hex(const Digest& digest);
// Reads the text that hex() writes; anything else is no digest.
std::optional<Digest> parse_hex(std::string_view text);

}  // namespace AITER_ATTN_NAMESPACE::runtime
