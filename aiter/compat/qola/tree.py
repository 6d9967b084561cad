# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""QoLA's output tree of lib/, include/, configs/ and manifest.json, written whole or not at all."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

ENTRIES = ("configs", "include", "lib", "manifest.json")


class TreeError(Exception):
    """An output tree that cannot be written."""


def _require_replaceable(output: Path) -> None:
    if not output.exists():
        return
    if not output.is_dir():
        raise TreeError(f"{output}: is no folder; name another")
    for entry in sorted(output.iterdir()):
        if entry.name not in ENTRIES:
            raise TreeError(
                f"{output}: has {entry.name}, which is not of an output tree; name another folder, "
                "or empty this one"
            )


@contextlib.contextmanager
def replaced(output: Path) -> Iterator[Path]:
    """A new folder beside output, which takes its place at the end.

    After an error output is as it was, and the new folder is gone. Raises TreeError at once where
    the folder cannot be made, or output has files of others.
    """
    try:
        _require_replaceable(output)
        output.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
    except OSError as error:
        raise TreeError(f"{output}: cannot be written: {error.strerror}; name another") from None
    new, old = work / "new", work / "old"
    try:
        new.mkdir()
        yield new
        # Somebody may have filled it meanwhile.
        _require_replaceable(output)
        if output.exists():
            output.rename(old)
        try:
            new.rename(output)
        except OSError:
            if old.exists():
                old.rename(output)
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
