# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""contents.toml: licences of materials, and which of them are inside the wheel."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Iterable, Mapping
from pathlib import Path

import tomllib

from toolchains.sbom.materials import Material

_TABLES = ("in_wheel", "tools")
_SOURCES = ("debian", "npm", "pypi")


class ContentsError(Exception):
    """contents.toml is not what its head says. The message names the place and the next step."""


@dataclasses.dataclass(frozen=True)
class Contents:
    """table -> source -> pattern of a name -> SPDX expression."""

    tables: Mapping[str, Mapping[str, Mapping[str, str]]]

    def _match(self, table: str, material: Material) -> str | None:
        patterns = self.tables.get(table, {}).get(material.source, {})
        matching = (p for p in patterns if fnmatch.fnmatchcase(material.name, p))
        return next(matching, None)

    def is_in_wheel(self, material: Material) -> bool:
        return self._match("in_wheel", material) is not None

    def licence(self, material: Material) -> str | None:
        """An SPDX expression, or None where it is not known."""
        for table in _TABLES:
            pattern = self._match(table, material)
            if pattern is not None:
                return self.tables[table][material.source][pattern]
        return None

    def unused(self, materials: Iterable[Material]) -> list[str]:
        """Patterns that match none of the materials: left over from a lock of the past."""
        names: dict[str, set[str]] = {source: set() for source in _SOURCES}
        for material in materials:
            names[material.source].add(material.name)
        return [
            f"[{table}.{source}] {pattern!r}"
            for table, sources in self.tables.items()
            for source, patterns in sources.items()
            for pattern in patterns
            if not fnmatch.filter(names[source], pattern)
        ]


def read(path: Path) -> Contents:
    """Raises ContentsError for anything that the file's head does not describe."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ContentsError(f"{path}: {error}") from error
    for table, sources in tables.items():
        _check(path, table, _TABLES, sources)
        for source, patterns in sources.items():
            _check(path, f"{table}.{source}", [f"{table}.{s}" for s in _SOURCES], patterns)
            for pattern, licence in patterns.items():
                if not isinstance(licence, str) or not licence:
                    raise ContentsError(
                        f"{path}: [{table}.{source}] {pattern!r} is {licence!r}; want an SPDX "
                        "expression"
                    )
    return Contents(tables)


def _check(path: Path, name: str, known: Iterable[str], value: object) -> None:
    if name not in known:
        raise ContentsError(f"{path}: unknown table [{name}]; there are {', '.join(known)}")
    if not isinstance(value, dict):
        raise ContentsError(f"{path}: {name} is {value!r}; want a table")
