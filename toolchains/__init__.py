# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The programs that belong to the toolchains.

This file makes it a regular package: a folder `toolchains` elsewhere on the module path (from
PYTHONPATH, say) cannot take its place.
"""
