# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""TransformerEngine's calls beyond those of calls_test: packed sequences, padded ones, and those
that this interface refuses."""

from __future__ import annotations

import os
import re

import pytest

from tests.consumers.attention import Attention, Consumer, Layout
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, Case
from tests.emulator.hip.emulated_hip import Runtime
from tests.emulator.hip.hip import Hip

_LENGTHS = ((33, 47), (70, 40), (1, 130), (9, 20))
_WINDOW = {"mask": MASK_BOTTOM_RIGHT, "window": (-1, 0)}
_HEADS = [(2, 2), (4, 2), (3, 1)]
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


def test_padded_by_sums(
    hip: Hip, consumer: Consumer, arch: str, runtime: Runtime, capfd: pytest.CaptureFixture[str]
) -> None:
    padding = ((3, 5), (0, 9), (7, 0), (1, 1))
    layout = Layout(group=True, padding=padding)
    problem = Attention(hip, consumer, arch, Case("", _LENGTHS, 2, 2, **_WINDOW), layout)
    for function in (problem.forward, problem.backward):
        assert function() == -1
        text = r"cu_seqlen_q_ptr is 0x\w+, sums of the rows in use, but must be NULL"
        assert re.search(text, capfd.readouterr().err)
    assert not runtime.launches


def test_seed_and_offset_apart(
    hip: Hip, consumer: Consumer, arch: str, runtime: Runtime, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of a dropout whose state is nowhere."""
    problem = Attention(hip, consumer, arch, _SMALL, p_drop=0.5)
    for function in (problem.forward, problem.backward):
        assert function() == -1
        assert "drop_seed_offset is the pointers" in capfd.readouterr().err
    assert not runtime.launches
