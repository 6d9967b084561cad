# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`./bazelw --relock pypi`: from requirements.toml to lock.json.

The lock's schema:

    {"regenerate": "./bazelw --relock pypi",
     "distributions": {NAME: {"version": VERSION,
                              "files": {KIND: {"filename", "sha256"}}}}}

KIND is "sdist", "any" (a wheel for every Python, with x86-64 programs in it or not), an ABI like
"cp311" (a manylinux x86-64 wheel for it, or for the stable ABI), or an environment of the Python of
TOOLS_ABI, "site" or "tools" (the wheel that this Python takes).
NAME is the index's; another version of a distribution has a name of its own, "NAME@...".
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from toolchains.locks import constants, entries
from toolchains.locks.errors import LocksError
from toolchains.locks.whole import whole
from toolchains.pypi import index

HERE = pathlib.Path(__file__).absolute().parent
REQUIREMENTS = HERE / "requirements.toml"
LOCK = HERE / "lock.json"
REGENERATE = "./bazelw --relock pypi"
ENVIRONMENTS = ["site", "tools"]


def parse_requirements(
    text: str, where: str, abis: Iterable[str]
) -> dict[str, tuple[str, list[str]]]:
    """Returns distribution -> (version, kinds). Raises LocksError for anything unknown.

    The kind "abis" stands for all of `abis`.
    """
    wanted = {}
    for name, entry in entries.wanted(text, where, "distribution").items():
        if set(entry) != {"version", "files"}:
            raise LocksError(
                f"{where}: distribution {name!r}: has {sorted(entry)}, want files and version"
            )
        if not isinstance(entry["version"], str) or not isinstance(entry["files"], list):
            raise LocksError(
                f"{where}: distribution {name!r}: version {entry['version']!r}, files "
                f"{entry['files']!r}; want a text and a list"
            )
        kinds: list[str] = []
        for kind in entry["files"]:
            known = ["sdist", "any", "abis", *ENVIRONMENTS, *abis]
            if kind not in known:
                raise LocksError(
                    f"{where}: distribution {name!r}: file kind {kind!r}; want one of "
                    + ", ".join(known)
                )
            kinds += abis if kind == "abis" else [kind]
        wanted[name] = (entry["version"], kinds)
    return wanted


def _kind(filename: str, name: str, version: str) -> str | None:
    """Returns the kind that a file of the wanted version is, or None for any other file.

    A wheel for the stable ABI of a Python has the kind "ABI.abi3".
    """
    project = re.sub(r"[-_.]+", "[-_.]+", re.escape(name).replace(r"\-", "-"))
    prefix = rf"(?i:{project})-{re.escape(version)}"
    if re.fullmatch(prefix + r"\.tar\.gz", filename):
        return "sdist"
    linux = r"[a-z0-9_.]*manylinux[a-z0-9_.]*_x86_64"
    if re.fullmatch(prefix + rf"-(py2\.)?py3-none-(any|{linux})\.whl", filename):
        return "any"
    m = re.fullmatch(prefix + rf"-(cp3\d+)-(\1|abi3)-{linux}\.whl", filename)
    return m and (m[1] if m[2] == m[1] else f"{m[1]}.abi3")


def _kinds_of(abi: str) -> list[str]:
    """Returns the kinds of compiled wheels that the Python of an ABI takes, the best first."""
    minors = range(int(abi.removeprefix("cp3")), 1, -1)
    return [abi, *(f"cp3{minor}.abi3" for minor in minors)]


def choose(
    files: list[index.File], name: str, version: str, kinds: list[str], tools_abi: str
) -> dict[str, index.File]:
    """Returns kind -> file. Raises LocksError naming the files that there are."""
    found = {_kind(file.filename, name, version): file for file in files}
    chosen = {}
    for kind in kinds:
        taken = [*_kinds_of(tools_abi), "any"] if kind in ENVIRONMENTS else [kind]
        taken = _kinds_of(kind) if kind.startswith("cp3") else taken
        served = [k for k in taken if k in found]
        if not served:
            same = [f.filename for f in files if f"-{version}" in f.filename]
            raise LocksError(
                f"{name} {version}: the index has no file of kind {kind!r}; it has "
                + ", ".join(same or [f.filename for f in files][-10:])
            )
        chosen[kind] = found[served[0]]
    return chosen


def _sha256(pieces: Iterator[bytes]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _digest(file: index.File) -> str:
    return file.sha256 or index.read(file.url, _sha256)


def _abis() -> dict[str, Any]:
    return constants.read(HERE.parent / "versions/abis.bzl")


def requirements() -> dict[str, tuple[str, list[str]]]:
    """Returns the requests of the committed requirements.toml."""
    text = REQUIREMENTS.read_text(encoding="utf-8")
    return parse_requirements(text, REQUIREMENTS.name, _abis()["ABIS"])


def relock() -> list[str]:
    """Rewrites lock.json. Returns one line per file whose entry changed."""
    wanted = requirements()
    url = index.find()
    try:
        old = json.loads(LOCK.read_text(encoding="utf-8"))["distributions"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        old = {}  # all of it is written anew: a damaged lock is no obstacle
    distributions = {}
    for name, (version, kinds) in sorted(wanted.items()):
        project = index.project(name)
        files = index.read_page(url, project)
        if index.is_local(version):
            files += index.read_added(project)
        try:
            chosen = choose(files, project, version, kinds, _abis()["TOOLS_ABI"])
        except LocksError:
            kept = old.get(name, {})
            if not index.is_local(version) or kept.get("version") != version:
                raise
            distributions[name] = kept  # not every machine has a place with local versions
            continue
        distributions[name] = {
            "version": version,
            "files": {
                kind: {"filename": chosen[kind].filename, "sha256": _digest(chosen[kind])}
                for kind in sorted(kinds)
            },
        }
    data = {"regenerate": REGENERATE, "distributions": distributions}
    with whole(LOCK) as scratch:
        scratch.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return [
        f"{name}: {old.get(name, {}).get('version', 'none')} -> "
        f"{distributions.get(name, {}).get('version', 'none')}"
        for name in sorted(set(old) | set(distributions))
        if old.get(name) != distributions.get(name)
    ]
