# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Errors of locks and of the files that they name."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

_STEPS = {
    errno.EACCES: "allow this user to use it",
    errno.EDQUOT: "free some space there",
    errno.EFBIG: "raise the limit of a file's size",
    errno.ENAMETOOLONG: "work in a folder with a shorter path",
    errno.ENOSPC: "free some space there",
    errno.EPERM: "allow this user to use it",
    errno.EROFS: "choose a folder that can be written to",
}


class LocksError(Exception):
    """A lock or a locked file cannot be used.

    The message names the value, where it was looked for and the next step.
    """


@contextlib.contextmanager
def explained(what: str, instead: str = "") -> Iterator[None]:
    """Turns an OSError into a LocksError: `what` cannot be done. `instead` also helps."""
    try:
        yield
    except OSError as e:
        step = _STEPS.get(e.errno or 0, "check that path")
        raise LocksError(f"cannot {what}: {e}; {step}{instead}") from e
