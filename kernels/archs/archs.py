# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The archs' facts, for Python: README.md explains them.

Standard library only: it runs while repositories are fetched, before anything is built.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path


def rounded(number: int, step: int) -> int:
    """The multiple of step that number needs."""
    return -(-number // step) * step


@dataclasses.dataclass(frozen=True)
class ComputeUnit:
    """A compute unit's registers and memory, and the steps in which they are given out.

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
        return self.vgprs // rounded(max(count, 1), self.vgpr_granule)

    def waves_by_sgprs(self, count: int) -> int:
        return self.sgprs // rounded(max(count, 1), self.sgpr_granule)


@dataclasses.dataclass(frozen=True)
class Arch:
    """The record of an arch."""

    products: str
    wave_size: int
    fp8: str
    executed: bool
    compute_units: int
    compute_unit: ComputeUnit
    left_out: tuple[Mapping[str, object], ...] = ()


def read_archs(path: Path | str) -> dict[str, Arch]:
    """Arch -> its facts, of archs.json of @archs, which has checked them."""
    document = json.loads(Path(path).read_text("utf-8"))
    return {
        name: Arch(
            **record
            | {
                "compute_unit": ComputeUnit(**record["compute_unit"]),
                "left_out": tuple(record["left_out"]),
            }
        )
        for name, record in document.items()
    }


def block_size(block: Mapping[str, int], wave_size: int) -> int:
    """Work-items per workgroup on an arch with waves of wave_size.

    block  {"waves": number}, or {"work_items": number} where it does not depend on the wave
    """
    ((unit, number),) = block.items()
    return number * {"waves": wave_size, "work_items": 1}[unit]
