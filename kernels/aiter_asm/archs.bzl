# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The archs that AITER has assembly for."""

ASM_ARCHS = [
    "gfx942",
    "gfx950",
]
