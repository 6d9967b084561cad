# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The version of everything here. MODULE.bazel has to repeat it; a test compares."""

VERSION = "0.1.0"

# Of the C ABI: ATTN_ABI_VERSION of attn.h, the number behind a shared library's name.
ABI_VERSION = 1
