# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The Debian lock: which .deb files each group consists of, by pool path and sha256.

The schema of `lock.json`:

    {"regenerate": "./bazelw --relock debian",
     "groups": {NAME: {"suite": SUITE,
                       "packages": [{"name", "version", "path", "sha256", "size", "time"}, ...]}}}

`time` is a time at which the archive had the file: that of the signed index which named it.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
from collections.abc import Sequence

from toolchains.locks.errors import LocksError

LOCK = pathlib.Path(__file__).absolute().parent / "lock.json"
REGENERATE = "./bazelw --relock debian"
# Of Package.time, in UTC.
TIME_FORMAT = "%Y%m%dT%H%M%SZ"

_FIELDS = {
    "name": (str, r"[a-z0-9][a-z0-9+.-]+"),
    "version": (str, r"[A-Za-z0-9.+:~-]+"),
    "path": (str, r"pool/[A-Za-z0-9/_.+:~%-]+\.deb"),
    "sha256": (str, r"[0-9a-f]{64}"),
    "size": (int, r"[1-9][0-9]*"),
    "time": (str, r"\d{8}T\d{6}Z"),
}


@dataclasses.dataclass(frozen=True, order=True)
class Package:
    """One locked .deb file. `path` is relative to an archive's root."""

    name: str
    version: str
    path: str
    sha256: str
    size: int
    time: str


@dataclasses.dataclass(frozen=True)
class Group:
    """The packages that are unpacked into one tree, all of one suite, sorted by name."""

    suite: str
    packages: tuple[Package, ...]


def _package(entry: object, where: str) -> Package:
    if not isinstance(entry, dict) or set(entry) != set(_FIELDS):
        raise LocksError(
            f"{where}: an entry needs exactly the keys {', '.join(_FIELDS)}, got {entry!r}; "
            f"restore the file or run {REGENERATE}"
        )
    for key, (kind, pattern) in _FIELDS.items():
        value = entry[key]
        if type(value) is not kind or not re.fullmatch(pattern, str(value)):
            raise LocksError(
                f"{where}: package {entry['name']!r}: {key} is {value!r}, it must match "
                f"{pattern}; restore the file or run {REGENERATE}"
            )
    if ".." in entry["path"].split("/"):
        raise LocksError(f"{where}: package {entry['name']!r}: path {entry['path']!r} leaves pool/")
    return Package(**entry)


def parse(text: str, where: str) -> dict[str, Group]:
    """Returns the groups of a lock file's text. `where` names the file in errors.

    Raises LocksError for anything that is not exactly the schema.
    """
    try:
        data = json.loads(text)
        items = list(data["groups"].items())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise LocksError(
            f"{where}: not a Debian lock ({type(e).__name__}: {e}); "
            f"restore the file or run {REGENERATE}"
        ) from e
    groups = {}
    for name, group in items:
        at = f"{where}: group {name!r}"
        if not isinstance(group, dict) or not isinstance(group.get("packages"), list):
            raise LocksError(f"{at}: it has no list of packages; run {REGENERATE}")
        if not isinstance(group.get("suite"), str):
            raise LocksError(f"{at}: suite is {group.get('suite')!r}; run {REGENERATE}")
        packages = tuple(_package(p, at) for p in group["packages"])
        names = [p.name for p in packages]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise LocksError(f"{at}: locked more than once: {', '.join(twice)}; run {REGENERATE}")
        groups[name] = Group(group["suite"], packages)
    return groups


def read(path: pathlib.Path) -> dict[str, Group]:
    """Returns the groups of a lock file. Raises LocksError, OSError."""
    return parse(path.read_text(encoding="utf-8", errors="replace"), str(path))


def get_group(groups: dict[str, Group], name: str, where: str) -> Group:
    """Returns one group. Raises LocksError naming the groups there are."""
    if name not in groups:
        raise LocksError(
            f"{where}: no group {name!r}; there are {', '.join(sorted(groups)) or 'none'}. "
            f"Add it to packages.toml and run {REGENERATE}"
        )
    return groups[name]


def choose(group: Group, names: Sequence[str], where: str) -> list[Package]:
    """Returns the packages named, all when none is. Raises LocksError naming those there are."""
    packages = {p.name: p for p in group.packages}
    unknown = [n for n in names if n not in packages]
    if unknown:
        raise LocksError(f"{where} has no package {unknown[0]!r}; it has {', '.join(packages)}")
    return [packages[n] for n in sorted(names or packages)]


def dump(groups: dict[str, Group]) -> str:
    """Returns the text of a lock file; the same groups always give the same text."""
    data = {
        "regenerate": REGENERATE,
        "groups": {
            name: {
                "suite": group.suite,
                "packages": [dataclasses.asdict(p) for p in sorted(group.packages)],
            }
            for name, group in sorted(groups.items())
        },
    }
    return json.dumps(data, indent=1) + "\n"
