# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The kernels of core need what the golden files say, for the architectures of this build."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.bench.machine_code.golden import UPDATE, golden, golden_name
from tests.bench.machine_code.measured import Measured


@pytest.fixture(scope="module")
def measured() -> list[Measured]:
    listed = Path(os.environ["FIGURES"]).read_text("ascii").split()
    return [Measured.parse(Path(name).read_text("ascii")) for name in listed]


def test_the_resources_of_core_are_the_golden_ones(measured: list[Measured]) -> None:
    archs = {one.arch for one in measured}
    assert archs
    for arch in archs:
        found = golden(one for one in measured if one.arch == arch)
        expected = Path(__file__).with_name(golden_name(arch)).read_text("ascii")
        changed = set(found.splitlines()) ^ set(expected.splitlines())
        assert found == expected, (
            f"{arch}: the machine code of core has changed in {len(changed)} lines; if for the "
            f"better, {UPDATE} -- --golden, and commit with what `--against` said"
        )


def test_no_kernel_of_core_spills(measured: list[Measured]) -> None:
    assert {one.instance for one in measured if one.figures.spills} == set()
    assert {one.instance for one in measured if one.figures.loop_scratch} == set()
