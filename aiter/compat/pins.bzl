# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The pins of AITER whose structs are served: those of fields.toml."""

PINS = [
    "7a24cd8",
    "d32b0cb",
    "e95f7d4",
]
