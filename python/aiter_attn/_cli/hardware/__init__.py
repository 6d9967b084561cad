# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A GPU under test: its memory through the HIP runtime alone, the cases, their checks and times."""
