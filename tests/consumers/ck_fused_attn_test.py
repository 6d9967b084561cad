# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""TransformerEngine's calls beyond those of calls_test: packed sequences, padded ones, and those
that this interface refuses."""

from __future__ import annotations

import os

import pytest

from tests.consumers.attention import Attention, Consumer, Layout
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, Case
from tests.emulator.hip.emulated_hip import Runtime
from tests.emulator.hip.hip import Hip

_LENGTHS = ((33, 47), (70, 40), (1, 130), (9, 20))
_WINDOW = {"mask": MASK_BOTTOM_RIGHT, "window": (-1, 0)}
_HEADS = [(2, 2), (4, 2), (3, 1)]
# Rows that are used, and behind them: none, some, more than a tile; without queries, without keys.
_USED = ((33, 47), (70, 40), (1, 130), (0, 20), (9, 0))
_PADDED = Layout(True, ((0, 0), (5, 90), (140, 0), (12, 3), (7, 30)), by_sums=True)
_SMALL = Case("", ((17, 33),), 1, 1, **_WINDOW)


@pytest.mark.parametrize("heads", _HEADS, ids=str)
def test_packed(
    hip: Hip, consumer: Consumer, arch: str, capfd: pytest.CaptureFixture[str],
    heads: tuple[int, int],
) -> None:  # fmt: skip
    problem = Attention(hip, consumer, arch, Case("", _LENGTHS, *heads, **_WINDOW), Layout(True))
    if os.environ["PACKED"] == "refused":  # by a set of kernels that has none
        assert problem.forward() == problem.backward() == -1
        assert "group mode" in capfd.readouterr().err
        return
    assert problem.forward() == 0
    assert problem.backward() == 0
    problem.check()


@pytest.mark.parametrize("heads", _HEADS, ids=str)
def test_padded(
    hip: Hip, consumer: Consumer, arch: str, capfd: pytest.CaptureFixture[str],
    heads: tuple[int, int],
) -> None:  # fmt: skip
    problem = Attention(hip, consumer, arch, Case("", _USED, *heads, **_WINDOW), _PADDED)
    if os.environ["PACKED"] == "refused":
        assert problem.forward() == problem.backward() == -1
        assert "group mode" in capfd.readouterr().err
        return
    assert problem.forward() == 0
    assert problem.backward() == 0
    problem.check()


def test_seed_and_offset_apart(
    hip: Hip, consumer: Consumer, arch: str, runtime: Runtime, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of a dropout whose state is nowhere."""
    problem = Attention(hip, consumer, arch, _SMALL, p_drop=0.5)
    for function in (problem.forward, problem.backward):
        assert function() == -1
        assert "drop_seed_offset is the pointers" in capfd.readouterr().err
    assert not runtime.launches
