# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Errors that keep a release from being made or published."""

from __future__ import annotations


class ReleaseError(Exception):
    """The message names the value, the allowed ones and the next step."""
