# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Arrays, options, problems and calls: the package without its public functions. Nothing here knows
a front."""
