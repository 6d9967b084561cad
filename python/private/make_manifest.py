# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the wheel's manifest.json; manifest.bzl runs this.

make_manifest.py OUT MANIFEST LOCK USED...: MANIFEST with one more field, `not_locked`, made of the
Debian lock and of what the trees were really made of.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def not_locked(lock: Mapping[str, Any], used: Iterable[Mapping[str, str]]) -> list[str]:
    """Returns "name version" of the packages used that no group of the lock has, sorted."""
    locked = {p["sha256"] for group in lock["groups"].values() for p in group["packages"]}
    return sorted({f"{p['name']} {p['version']}" for p in used if p["sha256"] not in locked})


def main(out: str, manifest: str, lock: str, *trees: str) -> None:
    data, locked, *used = (
        json.loads(Path(path).read_text(encoding="utf-8")) for path in (manifest, lock, *trees)
    )
    data["not_locked"] = not_locked(locked, [package for tree in used for package in tree])
    Path(out).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
