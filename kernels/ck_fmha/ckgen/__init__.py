# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""From variant manifests to kernel instances of Composable Kernel's fused attention.

schema     the traits a manifest selects by, and the checks of what it says
pool       CK's generator objects as candidates with traits
selection  manifests -> the candidates of every variant set
emission   candidates -> sources and data files
"""
