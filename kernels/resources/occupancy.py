# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""How many waves of a kernel fit on a SIMD at once. kernels/archs.toml has the limits."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import tomllib


class ComputeUnitError(ValueError):
    """archs.toml does not say what a compute unit has."""


@dataclasses.dataclass(frozen=True)
class ComputeUnit:
    """What a compute unit has, and in which steps it is given out.

    vgprs, vgpr_granule  of a lane of a SIMD: ordinary registers and accumulators together
    sgprs, sgpr_granule  of a SIMD
    lds, lds_granule     bytes
    """

    simds: int
    waves_per_simd: int
    vgprs: int
    vgpr_granule: int
    sgprs: int
    sgpr_granule: int
    lds: int
    lds_granule: int

    def waves_by_vgprs(self, count: int) -> int:
        return self.vgprs // _rounded(max(count, 1), self.vgpr_granule)

    def waves_by_sgprs(self, count: int) -> int:
        return self.sgprs // _rounded(max(count, 1), self.sgpr_granule)


def compute_units(text: str, path: str = "kernels/archs.toml") -> dict[str, ComputeUnit]:
    """Architecture -> its compute unit, as archs.toml has them. Raises ComputeUnitError."""
    fields = [field.name for field in dataclasses.fields(ComputeUnit)]
    units = {}
    for arch, entry in tomllib.loads(text).items():
        unit = entry.get("compute_unit")
        if not isinstance(unit, dict) or sorted(unit) != sorted(fields):
            has = ", ".join(unit) if isinstance(unit, dict) and unit else "nothing"
            raise ComputeUnitError(
                f"{path}: [{arch}.compute_unit] has {has}; write each of {', '.join(fields)}"
            )
        for field, value in unit.items():
            if type(value) is not int or value <= 0:
                raise ComputeUnitError(
                    f"{path}: [{arch}.compute_unit]: {field} = {value!r}; write a number above 0"
                )
        units[arch] = ComputeUnit(**unit)
    return units


def unit_of(arch: str, units: Mapping[str, ComputeUnit]) -> ComputeUnit:
    """Raises ComputeUnitError for an architecture that archs.toml does not have."""
    if arch not in units:
        raise ComputeUnitError(
            f"no limits of {arch} are known, only of {', '.join(units)}: add a table "
            f"[{arch}.compute_unit] to kernels/archs.toml"
        )
    return units[arch]


def waves_per_simd(kernel: Mapping[str, int], unit: ComputeUnit) -> int:
    """Of the "kernel" of a code object's metadata (kernels/code_object/describe.py).

    Whole workgroups alone run on a compute unit; their waves are dealt out to its SIMDs in turn.
    """
    waves = -(-kernel["max_workgroup_size"] // kernel["wavefront_size"])
    of_simd = min(
        unit.waves_per_simd,
        unit.waves_by_vgprs(kernel["vgpr_count"]),
        unit.waves_by_sgprs(kernel["sgpr_count"]),
    )
    workgroups = unit.simds * of_simd // waves
    if kernel["lds_size"]:
        workgroups = min(workgroups, unit.lds // _rounded(kernel["lds_size"], unit.lds_granule))
    return -(-workgroups * waves // unit.simds)


def _rounded(number: int, step: int) -> int:
    return -(-number // step) * step
