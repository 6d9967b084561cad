# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The build's setting that known_findings.py depends on."""

# The environment of everything that asks which findings are known.
PATCHES_ENV = select({
    "//kernels/ck_fmha:patches.none": {"CK_PATCHES": "none"},
    "//conditions:default": {"CK_PATCHES": "default"},
})
