# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Every opcode against exact arithmetic, and small kernels for launches and their checks."""
