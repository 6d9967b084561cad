# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the wheel's manifest.json; manifest.bzl runs this.

It is that of attention's kernels with two more fields: `norms`, the norm kernels that are built in,
and `not_locked`, made of the Debian lock and of the real materials of the trees. A wheel that was
built with Python headers of the machine's has a third, `machine_headers`: their version and sha256.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import app, flags

_OUT = flags.DEFINE_string("out", None, "the wheel's manifest", required=True)
_MANIFEST = flags.DEFINE_string("manifest", None, "that of attention's kernels", required=True)
_NORMS = flags.DEFINE_string("norms", None, "the norm kernels that are built in", required=True)
_LOCK = flags.DEFINE_string("lock", None, "the Debian lock", required=True)
_MACHINE_HEADERS = flags.DEFINE_string("machine_headers", None, "the machine's Python headers")
_USED = flags.DEFINE_multi_string("used", [], "the materials of a tree")


def not_locked(lock: Mapping[str, Any], used: Iterable[Mapping[str, str]]) -> list[str]:
    """Returns "name version" of the packages used that no group of the lock has, sorted."""
    locked = {p["sha256"] for group in lock["groups"].values() for p in group["packages"]}
    return sorted({f"{p['name']} {p['version']}" for p in used if p["sha256"] not in locked})


def _read(path: str) -> Any:
    return json.loads(Path(path).read_text(encoding="utf-8"))


def main(_arguments: Sequence[str]) -> None:
    data = _read(_MANIFEST.value)
    used = [package for tree in _USED.value for package in _read(tree)]
    data["norms"] = _read(_NORMS.value)
    data["not_locked"] = not_locked(_read(_LOCK.value), used)
    if _MACHINE_HEADERS.value:
        data["machine_headers"] = _read(_MACHINE_HEADERS.value)
    Path(_OUT.value).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    app.run(main)
