# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A user's choice for a program that goes over variant sets: sets and archs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from kernels.matrix.counts import Row

_SET_NAME = re.compile(r"[a-z][a-z0-9_]*")


class ChoiceError(Exception):
    """The user asked for a name that there is not."""


def chosen(names: Sequence[str], known: Sequence[str], flag: str, what: str) -> list[str]:
    """The names, each once. Raises ChoiceError for one that is not known, or none."""
    for name in names:
        if name not in known:
            raise ChoiceError(f"--{flag}: unknown {what} {name!r}; known: {', '.join(known)}")
    if not names:
        raise ChoiceError(f"--{flag}: name at least one {what}; known: {', '.join(known)}")
    return list(dict.fromkeys(names))


def variant_set_files(readme: Path) -> dict[str, Path]:
    """Set -> its file, of the folder that README.md lies in."""
    found = sorted(readme.parent.glob("*.toml"))
    return {path.stem: path for path in found if _SET_NAME.fullmatch(path.stem)}


def present(variant_set: str, arch: str, rows: Sequence[Row]) -> list[Row]:
    """The instances that there are for an arch. Raises ChoiceError if there is none."""
    found = [row for row in rows if arch not in row.get("left_out", {})]
    if not found:
        reasons = sorted({row["left_out"][arch] for row in rows})
        raise ChoiceError(
            f"variant set {variant_set} has no instance for {arch}: all {len(rows)} are left out: "
            f"{'; '.join(reasons)} (kernels/archs/{arch}.json)"
        )
    return found
