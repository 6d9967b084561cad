# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A module beside a py_tool's program."""

NAME = __name__
