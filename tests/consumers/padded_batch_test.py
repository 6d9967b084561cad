# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""aiter::mha_fwd in batch mode with sums of used rows, executed, against float64."""

from __future__ import annotations

import pytest

from tests.consumers.attention import Attention, Consumer, Layout
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, Case
from tests.emulator.hip.hip import Hip

_ROWS = 128  # of queries and keys in each entry: they fill tiles
# All, some, fewer than a tile, none of the keys, none of the queries, nothing.
_USED = ((128, 128), (70, 40), (5, 128), (9, 0), (0, 20), (0, 0))


@pytest.mark.parametrize("heads", [(2, 2), (4, 2)], ids=str)
def test_forward(hip: Hip, consumer: Consumer, arch: str, heads: tuple[int, int]) -> None:
    """Padding is not read, where it is NaN, nor written."""
    padding = tuple((_ROWS - queries, _ROWS - keys) for queries, keys in _USED)
    case = Case("", _USED, *heads, mask=MASK_BOTTOM_RIGHT, window=(-1, 0))
    problem = Attention(hip, consumer, arch, case, Layout(padding=padding, by_sums=True))
    assert problem.forward() == 0
    problem.check("o", "lse")
