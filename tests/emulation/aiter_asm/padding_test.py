# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""AITER's causal forward kernels in group mode on padded sequences: they take the sums of used rows
and the starts of sequences, padding included."""

from __future__ import annotations

import pytest

from kernels.aiter_asm.table import AsmObject
from tests.emulation.aiter_asm import launches
from tests.emulation.harness.cases import Case
from tests.emulation.verify.verdict import GATES, Gate

_OBJECTS = [
    chosen
    for chosen in launches.objects().objects
    if (chosen.direction, chosen.mode, chosen.mask) == ("forward", "group", "causal")
    and chosen.head_size_qk == 128  # the others have defect R
]
_PADDING = ((0, 0), (40, 7), (9, 130), (5, 60), (300, 9))
# Truncated numbers are off by up to twice as much as rounded ones, and all the same way.
_TRUNCATED = Gate(1.2, 4.0)


@pytest.mark.parametrize("chosen", _OBJECTS, ids=lambda chosen: chosen.file)
def test_padding_is_neither_read_nor_written(chosen: AsmObject) -> None:
    """gfx950's objects are wrong for more than one tile of queries (defect P)."""
    longest = chosen.tile_q + (1 if chosen.arch == "gfx942" else -1)
    lengths = ((longest, 300), (3, 31), (70, 40), (0, 9), (17, 0))
    result = launches.forward(chosen, Case("padded", lengths, 4, 2), padding=_PADDING)
    assert not result.fault and not result.signatures, result
    assert result.gaps_untouched
    for name, error in result.errors.items():
        gate = _TRUNCATED if chosen.rounding == "rtz" and name == "o" else GATES[name]
        assert gate.allows(error.rms, error.largest), f"{name}: {error}"
