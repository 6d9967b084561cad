# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Waves of a SIMD by the rules of the ISAs, from data; data that is not whole is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernels.resources.occupancy import ComputeUnitError, compute_units, unit_of, waves_per_simd

# A table to be damaged.
_GFX90A = """
[gfx90a]
products = "Instinct MI210"

[gfx90a.compute_unit]
simds = 4
waves_per_simd = 8
vgprs = 512
vgpr_granule = 8
sgprs = 800
sgpr_granule = 16
lds = 65536
lds_granule = 512
"""
_UNITS = compute_units(Path(os.environ["ARCHS"]).read_text("utf-8"))
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


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
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


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
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


def test_an_architecture_without_limits_is_an_error_that_says_where_they_go() -> None:
    with pytest.raises(ComputeUnitError, match=r"gfx1100 .*gfx942.*\[gfx1100.compute_unit\] to "):
        unit_of("gfx1100", _UNITS)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("lds_granule = 512\n", "", "[gfx90a.compute_unit] has simds, waves_per_simd, vgprs, "),
        ("simds = 4", "smids = 4", "[gfx90a.compute_unit] has smids, "),
        (_GFX90A.partition("\n\n")[2], "", "[gfx90a.compute_unit] has nothing; write each of simd"),
        ("simds = 4", 'simds = "4"', "[gfx90a.compute_unit]: simds = '4'; write a number above 0"),
        ("simds = 4", "simds = 0", "[gfx90a.compute_unit]: simds = 0; write a number above 0"),
        ("simds = 4", "simds = true", "simds = True; write a number above 0"),
    ],
)
def test_limits_that_are_not_whole(old: str, new: str, words: str) -> None:
    assert old in _GFX90A
    with pytest.raises(ComputeUnitError) as refused:
        compute_units(_GFX90A.replace(old, new))
    assert str(refused.value).startswith("kernels/archs.toml: ")
    assert words in str(refused.value)
