// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#pragma once

namespace aiter_attn {

// The module's version in MODULE.bazel.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace aiter_attn
