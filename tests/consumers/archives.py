# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Archives of objects, as `ar` writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def members(archive: Path) -> Iterator[bytes]:
    """The objects of an archive."""
    data = archive.read_bytes()
    assert data[:8] == b"!<arch>\n"
    at = 8
    while at < len(data):
        name, size = data[at : at + 16].decode().rstrip(), int(data[at + 48 : at + 58])
        if name not in ("/", "//"):
            yield data[at + 60 : at + 60 + size]
        at += 60 + size + size % 2


def instances(archive: Path) -> list[bytes]:
    """Those objects that have a code object (kernels/code_object/linked.S)."""
    return [member for member in members(archive) if b"attn_code_objects" in member]
