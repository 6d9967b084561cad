# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Instances that there are none of on an arch: those that upstream has for others alone, and
`left_out` of the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernels.archs.archs import Arch
from kernels.ck_fmha.ckgen.directions import TARGETS, Candidate
from kernels.ck_fmha.ckgen.schema import known_values, parse_table
from kernels.ck_fmha.ckgen.selection import admits
from kernels.variants.values import VariantSetError


def target_of(arch: str) -> str:
    """Upstream's name of the archs that one is of. Raises VariantSetError."""
    for target in TARGETS:
        if arch.startswith(target):
            return target
    raise VariantSetError(
        f"kernels/archs/{arch}.json: Composable Kernel has kernels for {', '.join(TARGETS)} alone; "
        "name an arch of one of these, or add its target to TARGETS of ckgen/directions.py."
    )


def left_out(
    archs: Mapping[str, Arch], candidates: Sequence[Candidate]
) -> dict[str, dict[str, str]]:
    """Instance -> arch -> why there is none for it.

    An instance is left out where all candidates that it is of are. Raises VariantSetError for a
    table that is none of a variant set file, or leaves nothing out, and for an unknown arch.
    """
    known = known_values([candidate.traits for candidate in candidates])
    found: dict[str, dict[str, str]] = {}
    for arch, record in archs.items():
        target = target_of(arch)
        exclusions = []
        for number, table in enumerate(record.left_out, start=1):
            where = f"kernels/archs/{arch}.json: left_out #{number}"
            selector = {key: value for key, value in table.items() if key != "because"}
            because = str(table["because"])
            exclusions.append((parse_table(selector, None, known, where), because))
        reasons: dict[str, str] = {}
        needed: set[str] = set()
        used: set[str] = set()
        for candidate in candidates:
            names = [instance.name for instance in candidate.instances]
            if candidate.target != target:
                because = f"Composable Kernel has it for {candidate.target} alone"
                reasons |= dict.fromkeys(names, because)
            elif which := [e for e in exclusions if admits(e[0], candidate)]:
                reasons |= dict.fromkeys(names, which[0][1])
                used.update(selector.where for selector, _ in which)
            else:
                needed.update(names)
        for selector, _ in exclusions:
            if selector.where not in used:
                raise VariantSetError(f"{selector.where}: leaves nothing out; remove it.")
        for name in reasons.keys() - needed:
            found.setdefault(name, {})[arch] = reasons[name]
    return found
