# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""How the library's C++ is compiled."""

# Statically linked into a shared object, too, the library exports its C ABI only.
COPTS = [
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
]
