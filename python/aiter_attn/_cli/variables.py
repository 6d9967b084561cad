# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Variables of the environment: of this project, of GPU runtimes, of others (variables.json)."""

from __future__ import annotations

import dataclasses
import difflib
import fnmatch
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["Variable", "in_environment"]

_PREFIX = "AITER_ATTN_"


@dataclasses.dataclass(frozen=True)
class Variable:
    """A variable that is set. `of` is the project that reads it; of an unknown one it is None."""

    name: str
    value: str
    of: str | None
    here: str


def _tables() -> dict[str, Any]:
    text = Path(__file__).with_name("variables.json").read_text(encoding="utf-8")
    tables: dict[str, Any] = json.loads(text)
    return tables


def _near(name: str, names: Sequence[str]) -> str | None:
    """The one of names that differs from name in a letter or two, behind the prefix."""
    ends = [known.removeprefix(_PREFIX) for known in names]
    found = difflib.get_close_matches(name.removeprefix(_PREFIX), ends, 1, cutoff=0.75)
    return _PREFIX + found[0] if found else None


def in_environment(environ: Mapping[str, str]) -> Iterator[Variable]:
    """The variables of an environment that mean something here or to a project like this, by name.

    One that begins as ours do and is none of them is told, too: it is likely misspelt.
    """
    tables = _tables()
    known = {
        name: (of, here)
        for of, table in {
            "aiter-attn": tables["own"] | tables["build"],
            "GPU runtimes": tables["runtime"],
            **tables["foreign"],
        }.items()
        for name, here in table.items()
    }
    for name, value in sorted(environ.items()):
        of, here = known.get(name) or next(
            (known[k] for k in known if "*" in k and fnmatch.fnmatchcase(name, k)), (None, "")
        )
        if of is None and name.startswith(_PREFIX):
            ours = sorted(name for name in tables["own"] if name.startswith(_PREFIX))
            near = _near(name, [*ours, *tables["build"]])
            allowed = f"allowed: {', '.join(ours)}"
            here = f"no such variable; {f'is it {near}?' if near else allowed}"
        if here:
            yield Variable(name, value, of, here)
