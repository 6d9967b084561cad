# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The kernels of core need what the golden files say, for the archs of this build."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernels.archs.archs import read_archs
from kernels.resources.golden import UPDATE, golden, golden_name
from kernels.resources.measured import Measured


@pytest.fixture(scope="module")
def measured() -> list[Measured]:
    listed = Path(os.environ["FIGURES"]).read_text("ascii").split()
    return [Measured.parse(Path(name).read_text("ascii")) for name in listed]


def test_the_resources_of_core_are_the_golden_ones(measured: list[Measured]) -> None:
    units = {name: arch.compute_unit for name, arch in read_archs(os.environ["ARCHS"]).items()}
    archs = {one.arch for one in measured}
    assert archs
    for arch in archs:
        found = golden((one for one in measured if one.arch == arch), units)
        expected = Path(os.environ["README"]).with_name(golden_name(arch)).read_text("ascii")
        changed = set(found.splitlines()) ^ set(expected.splitlines())
        assert found == expected, (
            f"{arch}: the machine code of core has changed in {len(changed)} lines; if for the "
            f"better, {UPDATE}, and commit with what `--against` said"
        )


def test_no_kernel_of_core_spills(measured: list[Measured]) -> None:
    """But scalar registers of forward with transposed loads, which lanes of vector registers hold:
    no option of code generation avoids that. With a mask a turn of the loop reads a few, without
    one none (docs/performance.md)."""
    assert {one.instance for one in measured if one.kernel["vgpr_spill_count"]} == set()
    assert {one.instance for one in measured if one.figures.loop_scratch} == set()
    assert {one.instance for one in measured if one.figures.early != 0} == set()
    for one in measured:
        transposed = "_qr_async_trload_" in one.instance
        assert one.kernel["sgpr_spill_count"] <= (31 if transposed else 0), one.instance
        masked = transposed and "_mask_" in one.instance
        lanes = one.figures.loop_lanes
        assert lanes is not None
        assert lanes <= (6 if masked else 0), one.instance
