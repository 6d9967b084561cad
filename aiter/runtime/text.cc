// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/text.h"

#include <cstddef>
#include <cstdint>

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

// Bytes of the well-formed character that text, which is not empty, starts with; 0: none.
size_t character_size(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t size = lead < 0x80 ? 1 : lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (size < 2) return size;
  if (lead > 0xf4 || size > text.size()) return 0;
  uint32_t code = lead & (0x7f >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // in that many bytes
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < kLeast[size] || surrogate || code > 0x10ffff ? 0 : size;
}

}  // namespace

std::string utf8(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const size_t size = character_size(text);
    clean += size ? text.substr(0, size) : "\xef\xbf\xbd";
    text.remove_prefix(size ? size : 1);
  }
  return clean;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
