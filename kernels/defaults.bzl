# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The kernels of a build that names none: those of releases."""

DEFAULT_ARCHS = "gfx942"
DEFAULT_VARIANTS = "core"
