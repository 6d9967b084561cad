# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Materials of a build: the files that the locks name, as values."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

# The name of what of_machine() gives.
PYTHON_HEADERS = "python-headers"


@dataclasses.dataclass(frozen=True, order=True)
class Material:
    """One locked file; or files of the machine's, which no lock has.

    source: "debian", "pypi" or "npm", the lock that names it; "machine"
    """

    source: str
    name: str
    version: str
    sha256: str


def of_debian(packages: Iterable[Mapping[str, Any]]) -> set[Material]:
    """Of the packages of a group in the lock, or of the debian_lock.json of a tree."""
    return {Material("debian", p["name"], p["version"], p["sha256"]) for p in packages}


def of_debian_lock(lock: Mapping[str, Any]) -> set[Material]:
    """Of all groups. A package that several have is one material."""
    return {m for group in lock["groups"].values() for m in of_debian(group["packages"])}


def of_pypi_lock(lock: Mapping[str, Any]) -> set[Material]:
    return {
        Material("pypi", name.partition("@")[0], entry["version"], file["sha256"])
        for name, entry in lock["distributions"].items()
        for file in entry["files"].values()
    }


def of_npm_lock(lock: Mapping[str, Any]) -> set[Material]:
    return {
        Material("npm", name, entry["version"], entry["sha256"])
        for name, entry in lock["packages"].items()
    }


def of_machine(headers: Mapping[str, str]) -> Material:
    """The Python headers of the machine's, from their version and the sha256 over all of them."""
    return Material("machine", PYTHON_HEADERS, headers["version"], headers["sha256"])


def of_locks(debian: Path, pypi: Path, npm: Path) -> set[Material]:
    """Of all three lock files."""
    return (
        of_debian_lock(json.loads(debian.read_text(encoding="utf-8")))
        | of_pypi_lock(json.loads(pypi.read_text(encoding="utf-8")))
        | of_npm_lock(json.loads(npm.read_text(encoding="utf-8")))
    )
