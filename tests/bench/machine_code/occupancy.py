# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""How many waves of a kernel fit on a SIMD at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

_SIMDS = 4
_WAVES_PER_SIMD = 8
_VECTOR_REGISTERS = 512  # of a lane: ordinary ones and accumulators together
_VECTOR_GRANULE = 8
# Scalar registers of a wave -> waves of a SIMD; beyond the last, _FEWEST_BY_SCALARS.
_SCALAR_REGISTERS = ((80, 10), (88, 9), (100, 8))
_FEWEST_BY_SCALARS = 7


@dataclasses.dataclass(frozen=True)
class Unit:
    """A compute unit of an architecture: its LDS, in bytes, and in what steps that is given out."""

    lds: int
    lds_granule: int


# What differs between the architectures of kernels/archs.toml; the rest is CDNA 3's and 4's alike.
_UNITS = {
    "gfx942": Unit(lds=64 * 1024, lds_granule=512),
    "gfx950": Unit(lds=160 * 1024, lds_granule=1280),
}


def waves_per_simd(kernel: Mapping[str, int], arch: str) -> int:
    """Of the "kernel" of a code object's metadata (kernels/code_object/describe.py).

    Whole workgroups alone run on a compute unit; their waves are dealt out to its SIMDs in turn.
    Raises ValueError for an architecture whose limits are not known here.
    """
    if arch not in _UNITS:
        raise ValueError(
            f"the limits of {arch} are not known, those of {', '.join(_UNITS)} are: "
            "add a row to tests/bench/machine_code/occupancy.py"
        )
    unit = _UNITS[arch]
    by_vectors = _VECTOR_REGISTERS // _rounded(max(kernel["vgpr_count"], 1), _VECTOR_GRANULE)
    by_scalars = next(
        (waves for limit, waves in _SCALAR_REGISTERS if kernel["sgpr_count"] <= limit),
        _FEWEST_BY_SCALARS,
    )
    waves = -(-kernel["max_workgroup_size"] // kernel["wavefront_size"])
    workgroups = _SIMDS * min(_WAVES_PER_SIMD, by_vectors, by_scalars) // waves
    if kernel["lds_size"]:
        workgroups = min(workgroups, unit.lds // _rounded(kernel["lds_size"], unit.lds_granule))
    return -(-workgroups * waves // _SIMDS)


def _rounded(number: int, step: int) -> int:
    return -(-number // step) * step
