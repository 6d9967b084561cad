# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The public functions, which choose the front of an array, or go to the core themselves."""
