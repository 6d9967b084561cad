# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`python -m aiter_attn`."""

from aiter_attn._cli.main import program

if __name__ == "__main__":
    program()
