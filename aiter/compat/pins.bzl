# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The pins of AITER whose structs are served: those of fields.toml."""

PINS = [
    "7a24cd8",
    "d32b0cb",
    "e95f7d4",
]

# Pins whose forward struct has num_splits.
PINS_WITH_SPLITS = ["7a24cd8"]

# Pins whose backward struct has workspace_alloc.
PINS_WITH_WORKSPACE = [
    "7a24cd8",
    "e95f7d4",
]
