# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The random numbers of dropout against the published answers, and their place in a tile."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulation.harness.dropout import kept, philox4x32, random_bytes

_ONES = (0xFFFFFFFF,) * 6
_PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0)


@pytest.mark.parametrize(
    ("rounds", "counter_and_key", "answer"),
    [
        (7, (0,) * 6, (0x5F6FB709, 0x0D893F64, 0x4F121F81, 0x4F730A48)),
        (7, _ONES, (0x5207DDC2, 0x45165E59, 0x4D8EE751, 0x8C52F662)),
        (7, _PI, (0x4DFCCABA, 0x190A87F0, 0xC47362BA, 0xB6B5242A)),
        (10, (0,) * 6, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (10, _ONES, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (10, _PI, (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
    ],
)
def test_known_answers(rounds: int, counter_and_key: tuple[int, ...], answer: tuple) -> None:
    """Those that the authors of Philox publish with their Random123 library."""
    counter = np.array(counter_and_key[:4], np.uint32)
    assert tuple(philox4x32(counter, counter_and_key[4:], rounds)) == answer


def test_place_in_a_tile() -> None:
    """Row 25 + 32, column 3 of batch 1, head 2 of 4: byte 9 of lane 35, second row of tiles."""
    seed, offset = 0x0123456789ABCDEF, 2**32 - 5
    numbers = random_bytes(70, 40, batch=1, head=2, heads=4, seed=seed, offset=offset)
    start = offset + (1 * 4 + 2) * 64 + 35
    counter = np.array([start & 0xFFFFFFFF, start >> 32, 1, 0], np.uint32)
    words = philox4x32(counter, (seed & 0xFFFFFFFF, seed >> 32))
    assert numbers.shape == (70, 40)
    assert numbers[32 + 25, 3] == words[2] >> 8 & 0xFF


def test_share_that_is_kept() -> None:
    """Of 256 values those up to floor(0.75 * 255) stay: 192."""
    numbers = random_bytes(256, 256, batch=0, head=0, heads=1, seed=1, offset=0)
    assert kept(0.25, np.arange(256)).sum() == 192
    assert abs(kept(0.25, numbers).mean() - 192 / 256) < 0.01
