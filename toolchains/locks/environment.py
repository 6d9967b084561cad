# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Settings of locked files by the environment: their folder, and whether others may do."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from toolchains.locks.errors import LocksError

STRICT = "AITER_ATTN_STRICT"

# Paths in the cache folder stand in rc files, run paths and URLs, unquoted.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/_.,+@=~-]+")


def cache_folder(environ: Mapping[str, str]) -> str:
    """Returns the absolute folder of bazelw's set-ups and of the store."""
    chosen = environ.get("BAZELW_CACHE")
    if not chosen:
        base = environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        chosen = os.path.join(base, "bazelw")
    folder = os.path.abspath(chosen)
    if not _PLAIN_PATH.fullmatch(folder):
        raise LocksError(
            f"the cache folder {folder!r} holds a character that is not one of letters, digits "
            "and /_.,+@=~-; set BAZELW_CACHE to another folder"
        )
    return folder


def is_strict(environ: Mapping[str, str]) -> bool:
    """Returns whether AITER_ATTN_STRICT allows locked files alone."""
    value = environ.get(STRICT, "")
    if value not in ("", "0", "1"):
        raise LocksError(f"{STRICT} is {value!r}; it may be 1, or 0 as if it were not set")
    return value == "1"
