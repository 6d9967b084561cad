# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""archs.toml: the architectures, and what upstream has no kernels of there.

An entry of `left_out` is a table of a variant set file, and `because`: the reason. What
`compute_unit` has, no source depends on: kernels/resources/occupancy.py reads it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import tomllib

from kernels.ck_fmha.ckgen.directions import Candidate
from kernels.ck_fmha.ckgen.schema import Selector, parse_table
from kernels.ck_fmha.ckgen.selection import admits
from kernels.ck_fmha.ckgen.values import VariantSetError, require_known
from kernels.launch_table.traits import TraitValue

_KEYS = ["products", "compute_units", "left_out", "compute_unit"]


@dataclasses.dataclass(frozen=True)
class Exclusion:
    selector: Selector
    because: str


def parse_archs(
    text: str, path: str, known: Mapping[str, Sequence[TraitValue]]
) -> dict[str, list[Exclusion]]:
    """Architecture -> what is left out there. Raises VariantSetError.

    known has, per trait, every value that an instance can take.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise VariantSetError(f"{path}: not TOML: {error}") from None
    archs: dict[str, list[Exclusion]] = {}
    for arch, entry in document.items():
        if not isinstance(entry, dict):
            raise VariantSetError(f"{path}: {arch} must be written as a table, [{arch}].")
        for key in entry:
            require_known(key, _KEYS, "key", f"{path}: [{arch}]")
        tables = entry.get("left_out", [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise VariantSetError(f"{path}: {arch}: write left_out as [[{arch}.left_out]] tables.")
        archs[arch] = []
        for number, table in enumerate(tables, start=1):
            where = f"{path}: [[{arch}.left_out]] #{number}"
            rest = dict(table)
            because = rest.pop("because", None)
            if not isinstance(because, str) or not because:
                raise VariantSetError(f'{where}: says no reason; write because = "...".')
            archs[arch].append(Exclusion(parse_table(rest, None, known, where), because))
    return archs


def left_out(
    archs: Mapping[str, Sequence[Exclusion]], candidates: Sequence[Candidate]
) -> dict[str, dict[str, str]]:
    """Instance -> architecture -> why there is none for it.

    An instance is left out where all candidates that it is of are. Raises VariantSetError for a
    table that leaves nothing out.
    """
    found: dict[str, dict[str, str]] = {}
    for arch, exclusions in archs.items():
        reasons: dict[str, str] = {}
        needed: set[str] = set()
        used: set[str] = set()
        for candidate in candidates:
            names = [instance.name for instance in candidate.instances]
            if which := [e for e in exclusions if admits(e.selector, candidate)]:
                reasons |= dict.fromkeys(names, which[0].because)
                used.update(exclusion.selector.where for exclusion in which)
            else:
                needed.update(names)
        for exclusion in exclusions:
            if exclusion.selector.where not in used:
                raise VariantSetError(f"{exclusion.selector.where}: leaves nothing out; remove it.")
        for name in reasons.keys() - needed:
            found.setdefault(name, {})[arch] = reasons[name]
    return found
