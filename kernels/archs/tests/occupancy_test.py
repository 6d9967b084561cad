# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Waves of a SIMD by the rules of the ISAs, from the records."""

from __future__ import annotations

import os

import pytest

from kernels.archs.archs import read_archs
from kernels.archs.occupancy import waves_per_simd

_UNITS = {name: arch.compute_unit for name, arch in read_archs(os.environ["ARCHS"]).items()}
# Those whose SIMDs have so many registers, given out in such steps.
_CDNA = [
    name
    for name, unit in _UNITS.items()
    if (unit.vgprs, unit.vgpr_granule, unit.sgprs, unit.sgpr_granule) == (512, 8, 800, 16)
]
_KERNEL = {
    "agpr_count": 0,
    "lds_size": 0,
    "max_workgroup_size": 256,
    "scratch_size": 0,
    "sgpr_count": 40,
    "sgpr_spill_count": 0,
    "vgpr_count": 64,
    "vgpr_spill_count": 0,
    "wavefront_size": 64,
}


@pytest.mark.parametrize("arch", _CDNA)
@pytest.mark.parametrize(
    ("registers", "waves"),
    [
        # The most registers for so many waves: a share of 512, in steps of 8.
        (0, 8),
        (64, 8),
        (65, 7),
        (72, 7),
        (73, 6),
        (80, 6),
        (81, 5),
        (96, 5),
        (97, 4),
        (128, 4),
        (129, 3),
        (168, 3),
        (169, 2),
        (256, 2),
        (257, 1),
        (512, 1),
    ],
)
def test_by_vector_registers_which_accumulators_are_among(
    arch: str, registers: int, waves: int
) -> None:
    kernel = _KERNEL | {"vgpr_count": registers, "agpr_count": registers // 2}
    assert waves_per_simd(kernel, _UNITS[arch]) == waves


@pytest.mark.parametrize("arch", _CDNA)
@pytest.mark.parametrize(("registers", "waves"), [(16, 8), (96, 8), (97, 7), (102, 7), (112, 7)])
def test_by_scalar_registers(arch: str, registers: int, waves: int) -> None:
    assert waves_per_simd(_KERNEL | {"sgpr_count": registers}, _UNITS[arch]) == waves


@pytest.mark.parametrize(
    ("lds", "work_items", "waves"),
    [
        # Bytes of LDS, work-items of a workgroup -> waves with 64 KiB, and with 160 KiB.
        (0, 256, (8, 8)),
        (8192, 256, (8, 8)),
        (8193, 256, (7, 8)),
        (32768, 256, (2, 4)),
        (32769, 256, (1, 4)),
        (65536, 256, (1, 2)),
        # 160 KiB are 128 steps of 1,280 bytes: three times 42, not 43.
        (53760, 256, (1, 3)),
        (53761, 256, (1, 2)),
        (65537, 256, (0, 2)),
        (81920, 256, (0, 2)),
        (81921, 256, (0, 1)),
        (163840, 256, (0, 1)),
        (163841, 256, (0, 0)),
        # Two workgroups of a wave each run on two of four SIMDs; one of 16 waves on all.
        (31744, 64, (1, 2)),
        (65536, 1024, (4, 8)),
    ],
)
def test_by_lds_of_whole_workgroups(lds: int, work_items: int, waves: tuple[int, int]) -> None:
    kernel = _KERNEL | {"lds_size": lds, "max_workgroup_size": work_items}
    small = {waves_per_simd(kernel, _UNITS[arch]) for arch in ("gfx90a", "gfx942")}
    assert small == {waves[0]}
    assert waves_per_simd(kernel, _UNITS["gfx950"]) == waves[1]


@pytest.mark.parametrize(
    ("registers", "work_items", "waves"),
    [
        # A workgroup of 16 waves takes four of each SIMD, or does not fit.
        (128, 1024, 4),
        (129, 1024, 0),
        (64, 1024, 8),
        # Three are there for six waves; a workgroup of two waves on each SIMD leaves one unused.
        (168, 512, 2),
    ],
)
def test_by_workgroups_that_fit_as_a_whole(registers: int, work_items: int, waves: int) -> None:
    kernel = _KERNEL | {"vgpr_count": registers, "max_workgroup_size": work_items}
    assert waves_per_simd(kernel, _UNITS["gfx942"]) == waves
