# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Reads the entries of a lock file, and of the file that it is made from."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from toolchains.locks import toml
from toolchains.locks.errors import LocksError

SHA256 = r"[0-9a-f]{64}"
_Name = TypeVar("_Name")


def read(
    path: pathlib.Path,
    pick: Callable[[Any], Mapping[_Name, dict[str, str]]],
    fields: Mapping[str, str],
    restore: str,
) -> dict[_Name, dict[str, str]]:
    """Returns the entries that `pick` finds in the JSON at `path`: name -> entry.

    `fields`: key of an entry -> the pattern of its value. Raises LocksError for a file that is not
    like that; it ends with `restore`, the next step. Raises OSError for one that cannot be read.
    """
    try:
        entries = dict(pick(json.loads(path.read_bytes())))
        values = [(name, key, entry.get(key)) for name, entry in entries.items() for key in fields]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise LocksError(f"{path}: not a lock ({type(e).__name__}: {e}); {restore}") from e
    for name, key, value in values:
        if not isinstance(value, str) or not re.fullmatch(fields[key], value):
            raise LocksError(
                f"{path}: {name}: {key} is {value!r}, it must match {fields[key]}; {restore}"
            )
    return entries


def wanted(text: str, where: str, table: str) -> dict[str, dict[str, Any]]:
    """Returns the entries of the one table of a TOML file. Raises LocksError for any other."""
    try:
        data = toml.loads(text)
    except (toml.TomlError, RecursionError) as e:
        raise LocksError(f"{where}: {e}") from e
    entries = data.pop(table, {})
    if data:
        raise LocksError(f"{where}: unknown tables {sorted(data)}; want {table}.*")
    named = entries.items() if isinstance(entries, dict) else []
    for name, value in [(table, entries), *((f"{table}.{name}", value) for name, value in named)]:
        if not isinstance(value, dict):
            raise LocksError(f"{where}: {name} is {value!r}; want a table")
    return entries
