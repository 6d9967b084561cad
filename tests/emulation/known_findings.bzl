# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The build's setting that known_findings.py depends on."""

# The environment of everything that asks which findings are known.
BARRIERS_ENV = select({
    "//kernels/ck_fmha:barriers.added": {"CK_BARRIERS": "added"},
    "//conditions:default": {"CK_BARRIERS": "upstream"},
})
