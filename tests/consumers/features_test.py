# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""TransformerEngine's calls with biases and dropout, by the kernels of the variant set `features`,
against float64."""

from __future__ import annotations

from typing import Any

import pytest

from tests.consumers.attention import Attention, Consumer, Layout
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, Case
from tests.emulator.hip.hip import Hip

_LENGTHS = ((77, 130),) * 2
_BATCH = Layout()


def _run(
    hip: Hip, consumer: Consumer, arch: str, heads: tuple[int, int], layout: Layout = _BATCH,
    lengths: tuple[tuple[int, int], ...] = _LENGTHS, window: tuple[int, int] = (-1, 0),
    **features: Any,
) -> None:  # fmt: skip
    case = Case("", lengths, *heads, mask=MASK_BOTTOM_RIGHT, window=window, **features)
    problem = Attention(hip, consumer, arch, case, layout)
    assert problem.forward() == 0
    assert problem.backward() == 0
    problem.check()


@pytest.mark.parametrize("heads", [(2, 2), (3, 1)], ids=str)
@pytest.mark.parametrize("entries", ["", "h", "b", "bh"], ids=lambda x: x or "one")
def test_a_bias_and_its_gradient(
    hip: Hip, consumer: Consumer, arch: str, entries: str, heads: tuple[int, int]
) -> None:
    """11SS, 1HSS, B1SS and BHSS: the gradient has an entry for every score, which the caller adds
    up."""
    _run(hip, consumer, arch, heads, Layout(bias=entries), bias="elementwise")


@pytest.mark.parametrize("heads", [(2, 2), (3, 1), (4, 2)], ids=str)
def test_alibi(hip: Hip, consumer: Consumer, arch: str, heads: tuple[int, int]) -> None:
    _run(hip, consumer, arch, heads, bias="alibi")


@pytest.mark.parametrize("window", [(-1, 0), (40, 9)], ids=str)
@pytest.mark.parametrize("heads", [(2, 2), (3, 1)], ids=str)
def test_dropout(
    hip: Hip, consumer: Consumer, arch: str, heads: tuple[int, int], window: tuple[int, int]
) -> None:
    _run(hip, consumer, arch, heads, window=window, p_drop=0.3)


def test_dropout_of_groups_of_heads(hip: Hip, consumer: Consumer, arch: str) -> None:
    """One entry of the batch, whose heads are numbered as they lie."""
    _run(hip, consumer, arch, (4, 2), lengths=_LENGTHS[:1], p_drop=0.3)
