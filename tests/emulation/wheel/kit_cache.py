# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""An empty cache for a process whose kernels the compile kit makes, and the keys in it."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path

import aiter_attn

__all__ = ["ARCH", "CACHE", "RECORD", "cached", "manifest"]

CACHE = Path(tempfile.mkdtemp(prefix="cache-", dir=os.environ.get("TEST_TMPDIR")))
# The store reads it at the first call.
os.environ["AITER_ATTN_CACHE_DIR"] = str(CACHE)
RECORD = CACHE / "recorded"
os.environ["AITER_ATTN_RECORD"] = str(RECORD)
ARCH = "gfx942"
# An object's bytes are behind it (aiter/runtime/store/cache.h).
_HEAD_SIZE = 80


def manifest() -> dict[str, str]:
    """Key -> sha256 of the code objects that the build compiled."""
    path = Path(aiter_attn.__file__).with_name("manifest.json")
    return {
        made["key"]: made["sha256"]
        for instance in json.loads(path.read_text())["instances"]
        for arch, made in instance["code_objects"].items()
        if arch == ARCH
    }


def cached() -> dict[str, str]:
    """Key -> sha256 of the code objects that the cache has."""
    return {
        path.stem: hashlib.sha256(path.read_bytes()[_HEAD_SIZE:]).hexdigest()
        for path in (CACHE / "code-objects").glob("*.object")
    }
