# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Files that are there as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import pathlib
import secrets
from collections.abc import Iterator

from toolchains.locks.errors import explained

# Of a scratch file's name: one that a killed program left behind is known by it.
PREFIX = ".part-"


@contextlib.contextmanager
def whole(path: pathlib.Path, instead: str = "") -> Iterator[pathlib.Path]:
    """Gives a scratch file beside `path`, which replaces `path` at the end.

    After an exception `path` is as it was and no scratch file is left. Raises LocksError
    for an OSError; `instead` is what else than mending its cause may help.
    """
    scratch = path.with_name(PREFIX + secrets.token_hex(8))
    try:
        with explained(f"write {path}", instead):
            yield scratch
            os.replace(scratch, path)
    finally:
        with contextlib.suppress(OSError):
            scratch.unlink()
