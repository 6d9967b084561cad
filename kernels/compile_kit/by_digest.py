# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Packs whose keys are the digests of the files in them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def packer_lines(files: Iterable[Path]) -> str:
    """The list that packer reads. Files that are the same are one of the pack's."""
    lines = {}
    for file in files:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        lines.setdefault(digest, f"{digest} {digest} {file}\n")
    return "".join(lines[digest] for digest in sorted(lines))
