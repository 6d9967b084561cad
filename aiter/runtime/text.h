// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Text of others (runtimes, the environment, callers), before it becomes part of ours.
#pragma once

#include <string>
#include <string_view>

namespace AITER_ATTN_NAMESPACE::runtime {

// The text as UTF-8: every byte that is not part of a well-formed character becomes U+FFFD.
std::string utf8(std::string_view text);

}  // namespace AITER_ATTN_NAMESPACE::runtime
