# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""From packages.toml and a suite's package index to the packages of a group.

Pure functions: `relock.py` brings the index, this module chooses from it. One suite is
consistent in itself, so version constraints need no solving: a name has one candidate.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolchains.debian.lock import Package
from toolchains.locks import entries
from toolchains.locks.errors import LocksError


@dataclasses.dataclass(frozen=True)
class GroupSpec:
    """A group of packages.toml.

    `closure`: glob patterns of the dependencies that are followed, from every package taken.
    `exclude`: glob patterns of those that are not, for any `closure`.
    """

    suite: str
    packages: tuple[str, ...]
    closure: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Candidate:
    """An index's entry of one package."""

    package: Package
    depends: tuple[tuple[str, ...], ...]


Index = dict[str, Candidate]


def _filled(value: Any, names: Mapping[str, str], where: str) -> Any:
    """Returns a table or a part of it with the placeholders in its strings replaced."""
    if isinstance(value, list):
        return [_filled(v, names, where) for v in value]
    if isinstance(value, dict):
        return {key: _filled(v, names, where) for key, v in value.items()}
    if not isinstance(value, str):
        return value
    try:
        return value.format_map(names)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as e:
        raise LocksError(
            f"{where}: {value!r}: no placeholder {e}; there are {sorted(names)}"
        ) from e


def parse_groups(
    text: str, where: str, versions: Mapping[str, str], abis: Mapping[str, str]
) -> dict[str, GroupSpec]:
    """Returns the groups of packages.toml. Raises LocksError for anything unknown in it.

    Strings may hold placeholders: names of `versions`, in lower case. A group whose name holds
    {python} is one group for each of `abis` (ABI -> suite): {python} is like 313, {version} like
    3.13, {suite} the ABI's suite.
    """
    allowed = [f.name for f in dataclasses.fields(GroupSpec)]
    names = {name.lower(): version for name, version in versions.items()}
    pythons = [
        names | {"python": abi[2:], "version": f"3.{abi[3:]}", "suite": suite}
        for abi, suite in abis.items()
    ]
    tables = {
        _filled(name, values, where): _filled(raw, values, f"{where}: group {name!r}")
        for name, raw in entries.wanted(text, where, "group").items()
        for values in (pythons if "{python}" in name else [names])
    }
    specs = {}
    for name, raw in tables.items():
        unknown = sorted(set(raw) - set(allowed))
        if unknown:
            raise LocksError(f"{where}: group {name!r}: unknown key {unknown[0]!r}; want {allowed}")
        for key in ("suite", "packages"):
            if not raw.get(key):
                raise LocksError(f"{where}: group {name!r}: {key!r} is missing")
        if not isinstance(raw["suite"], str):
            raise LocksError(f"{where}: group {name!r}: suite is {raw['suite']!r}; want a text")
        closure = raw.get("closure", False)
        if isinstance(closure, bool):
            closure = ["*"] if closure else []
        lists = {
            "packages": raw["packages"],
            "closure": closure,
            "exclude": raw.get("exclude", []),
        }
        for key, texts in lists.items():
            if not isinstance(texts, list) or not all(isinstance(t, str) for t in texts):
                raise LocksError(
                    f"{where}: group {name!r}: {key} is {texts!r}; want a list of texts"
                )
        specs[name] = GroupSpec(raw["suite"], **{k: tuple(v) for k, v in lists.items()})
    return specs


def _dependencies(field: str) -> tuple[tuple[str, ...], ...]:
    """'a (>= 1), b:any | c [amd64]' -> (('a',), ('b', 'c'))."""
    clauses = []
    for clause in field.split(","):
        names = [
            re.split(r"[\s(:\[<]", alternative.strip())[0] for alternative in clause.split("|")
        ]
        if any(names):
            clauses.append(tuple(n for n in names if n))
    return tuple(clauses)


def parse_index(text: str, time: str) -> tuple[Index, dict[str, list[str]]]:
    """Parses `apt-cache dumpavail` of an index of that time.

    Returns (packages by name, providers by virtual name).
    """
    index: Index = {}
    providers: dict[str, list[str]] = {}
    wanted = (
        "Package",
        "Version",
        "Filename",
        "SHA256",
        "Size",
        "Depends",
        "Pre-Depends",
        "Provides",
    )
    for stanza in text.split("\n\n"):
        fields = {}
        for line in stanza.splitlines():
            key, colon, value = line.partition(": ")
            if colon and key in wanted:
                fields[key] = value.strip()
        if not {"Package", "Version", "Filename", "SHA256", "Size"} <= set(fields):
            continue
        name = fields["Package"]
        depends = _dependencies(fields.get("Pre-Depends", "") + "," + fields.get("Depends", ""))
        package = Package(
            name,
            fields["Version"],
            fields["Filename"],
            fields["SHA256"],
            int(fields["Size"]),
            time,
        )
        index[name] = Candidate(package, depends)
        for virtual, *_ in _dependencies(fields.get("Provides", "")):
            providers.setdefault(virtual, []).append(name)
    return index, providers


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, p) for p in patterns)


def choose(
    spec: GroupSpec, index: Index, providers: dict[str, list[str]], where: str
) -> tuple[Package, ...]:
    """Returns a group's packages: the named ones and the dependencies that it asks for.

    Of alternatives the first that exists is taken; a virtual package gives its first provider.
    Raises LocksError for a package that the suite does not have.
    """
    taken: dict[str, Package] = {}
    todo = list(spec.packages)
    while todo:
        name = todo.pop()
        if name in taken:
            continue
        if name not in index:
            raise LocksError(
                f"{where}: suite {spec.suite} has no package {name!r}; "
                "correct packages.toml, or the suite has moved on: look for its new name"
            )
        taken[name] = index[name].package
        for clause in index[name].depends:
            real = [n for n in clause if n in index]
            real += [p for n in clause if n not in index for p in sorted(providers.get(n, ()))]
            if any(n in taken for n in real):
                continue
            wanted = [n for n in real if _matches(n, spec.closure)]
            if wanted and not _matches(wanted[0], spec.exclude):
                todo.append(wanted[0])
    return tuple(sorted(taken.values()))
