# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""One digest for a set of locked files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence


def identity(digests: Mapping[str, str] | Sequence[tuple[str, str]]) -> str:
    """Returns a sha256, 64 hex digits, over names and digests; their order does not matter."""
    lines = sorted(dict(digests).items())
    return hashlib.sha256("".join(f"{n} {d}\n" for n, d in lines).encode()).hexdigest()
