# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Which kernels of our own every build has, beside those of its variant set."""

OWN_KERNELS = [
    "//kernels/dropout_mask",
    "//kernels/no_keys",
    "//kernels/sinks",
    "//kernels/sum_heads",
]

# Their rows of the launch table, and their launch code.
OWN_ROWS = [package + ":rows.json" for package in OWN_KERNELS]
OWN_LAUNCH = [package + ":launch" for package in OWN_KERNELS]
