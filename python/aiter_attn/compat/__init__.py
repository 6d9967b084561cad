# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Other packages' names, order of arguments and results, in front of this package's functions.

A module here is imported as it is, or put under the original's name by its install(). The
differences from the original: docs/compat.md.
"""
