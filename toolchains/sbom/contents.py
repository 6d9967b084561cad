# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""contents.toml and copyrights.json: licences of materials, and which are inside the wheel."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomllib

from toolchains.sbom.materials import PYTHON_HEADERS, Material

_TABLES = ("in_wheel", "tools")
_SOURCES = ("debian", "machine", "npm", "pypi")

# SPDX's word for a licence that was not looked up.
UNKNOWN = "NOASSERTION"


class ContentsError(Exception):
    """contents.toml has another form than its head says. The message names the place and the next
    step."""


@dataclasses.dataclass(frozen=True)
class Contents:
    """The contents of the two files.

    tables: table -> source -> pattern of a name -> SPDX expression, or a list of files of a Debian
        package's source, whose licence is what the package says
    copyrights: name of a Debian package -> its sha256, these files, and what it says of them
    """

    tables: Mapping[str, Mapping[str, Mapping[str, str | Sequence[str]]]]
    copyrights: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)

    def _match(self, table: str, material: Material) -> str | None:
        patterns = self.tables.get(table, {}).get(material.source, {})
        matching = (p for p in patterns if fnmatch.fnmatchcase(material.name, p))
        return next(matching, None)

    def is_in_wheel(self, material: Material) -> bool:
        return self._match("in_wheel", material) is not None

    def _value(self, material: Material) -> str | Sequence[str] | None:
        for table in _TABLES:
            pattern = self._match(table, material)
            if pattern is not None:
                return self.tables[table][material.source][pattern]
        return None

    def sources(self, material: Material) -> Sequence[str] | None:
        """The files whose licence counts; None where contents.toml has the licence itself."""
        value = self._value(material)
        return None if isinstance(value, str) else value

    def licence(self, material: Material) -> str:
        """An SPDX expression, or UNKNOWN."""
        value = self._value(material)
        if isinstance(value, str):
            return value
        stated = self.copyrights.get(material.name, {})
        # Another version than the one that was read may say something else.
        if value is None or stated.get("sha256") != material.sha256:
            return UNKNOWN
        return str(stated["licence"])

    def unused(self, materials: Iterable[Material]) -> list[str]:
        """Patterns that match none of the materials: left over from a lock of the past."""
        names: dict[str, set[str]] = {source: set() for source in _SOURCES}
        names["machine"].add(PYTHON_HEADERS)  # in no lock
        for material in materials:
            names[material.source].add(material.name)
        return [
            f"[{table}.{source}] {pattern!r}"
            for table, sources in self.tables.items()
            for source, patterns in sources.items()
            for pattern in patterns
            if not fnmatch.filter(names[source], pattern)
        ]


def read(path: Path, copyrights: Path | None) -> Contents:
    """Raises ContentsError for anything that the file's head does not describe.

    Without `copyrights`, the licences in Debian packages are unknown.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ContentsError(f"{path}: {error}") from error
    for table, sources in tables.items():
        _check(path, table, _TABLES, sources)
        for source, patterns in sources.items():
            _check(path, f"{table}.{source}", [f"{table}.{s}" for s in _SOURCES], patterns)
            for pattern, licence in patterns.items():
                if not _is_licence(licence, (table, source) == ("in_wheel", "debian")):
                    raise ContentsError(
                        f"{path}: [{table}.{source}] {pattern!r} is {licence!r}; want an SPDX "
                        "expression or, in [in_wheel.debian], a list of source files"
                    )
    if copyrights is None:
        return Contents(tables)
    try:
        return Contents(tables, json.loads(copyrights.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ContentsError(
            f"{copyrights}: {error}; ./bazelw run //toolchains/sbom:read_copyrights writes it"
        ) from error


def _is_licence(value: object, sources_too: bool) -> bool:
    if isinstance(value, list):
        return sources_too and bool(value) and all(isinstance(s, str) and s for s in value)
    return isinstance(value, str) and bool(value)


def _check(path: Path, name: str, known: Iterable[str], value: object) -> None:
    if name not in known:
        raise ContentsError(f"{path}: unknown table [{name}]; there are {', '.join(known)}")
    if not isinstance(value, dict):
        raise ContentsError(f"{path}: {name} is {value!r}; want a table")
