# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Versions of the packages whose interfaces change from one to the next."""

from __future__ import annotations

import re

from aiter_attn._core.errors import UnsupportedError

__all__ = ["check"]


def check(package: str, found: str, taken: str) -> None:
    """Raises UnsupportedError unless found is of taken: "0.33.1" and "0.33+rocm" are of "0.33"."""
    if re.match(rf"{re.escape(taken)}(?!\d)", found) is None:
        raise UnsupportedError(
            f"{package}: version {found}; allowed: {taken}, whose interface of attention backends "
            f"this package was written for; install that one, or select a backend of {package}'s"
        )
