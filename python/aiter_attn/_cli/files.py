# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

__all__ = ["write_new", "write_whole"]


def write_whole(path: Path, data: bytes) -> None:
    """Writes the file that path leads to: beside it, then renamed over it, so that on OSError the
    file is as before. A pipe or a device is written as it is."""
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    beside = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}")
    try:
        # Not tempfile's, which only the owner may read.
        with beside.open("xb") as file:
            if path.exists():
                os.fchmod(file.fileno(), path.stat().st_mode & 0o7777)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.rename(path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def write_new(path: Path, data: bytes) -> None:
    """Writes a file that is not there yet, whole or not at all. Raises FileExistsError."""
    beside = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(beside, path)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
