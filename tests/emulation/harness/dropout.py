# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Which probabilities a kernel drops: upstream's random numbers, made without its code.

The generator is Philox4x32 with 7 rounds (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As
Easy as 1, 2, 3; SC 2011). CK (ck_tile/ops/fmha/block/block_dropout.hpp) gives each tile of 32 x 32
probabilities a subsequence, and in it each lane of a wave a counter, of which the 16 bytes are the
lane's elements of the tile.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray

ROUNDS = 7
_TILE, _LANES = 32, 64
_WORD = np.uint64(0xFFFFFFFF)


def philox4x32(counter: Array, key: tuple[int, int], rounds: int = ROUNDS) -> Array:
    """uint32 [..., 4] of counters, uint32 [..., 4]."""
    x0, x1, x2, x3 = (counter[..., i].astype(np.uint64) for i in range(4))
    k0, k1 = key
    for _ in range(rounds):
        first, second = np.uint64(0xD2511F53) * x0, np.uint64(0xCD9E8D57) * x2
        x0, x1, x2, x3 = (
            (second >> np.uint64(32)) ^ x1 ^ np.uint64(k0),
            second & _WORD,
            (first >> np.uint64(32)) ^ x3 ^ np.uint64(k1),
            first & _WORD,
        )
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([x0, x1, x2, x3], axis=-1).astype(np.uint32)


def random_bytes(
    rows: int, columns: int, batch: int, head: int, heads: int, seed: int, offset: int
) -> Array:
    """uint8 [rows][columns]: what CK compares with the probability to keep."""
    down, across = -(-rows // _TILE), -(-columns // _TILE)
    counter = np.zeros((down, across, _LANES, 4), np.uint32)
    start = offset + (batch * heads + head) * _LANES + np.arange(_LANES, dtype=np.uint64)
    counter[..., 0], counter[..., 1] = start & _WORD, start >> np.uint64(32)
    counter[..., 2] = np.arange(down)[:, None, None]
    counter[..., 3] = np.arange(across)[None, :, None]
    words = philox4x32(counter, (seed & 0xFFFFFFFF, seed >> 32))
    by_lane = np.ascontiguousarray(words).view(np.uint8)  # [down][across][lane][16]
    # A lane's byte 8 i + j is row 16 i + 8 (lane / 32) + j, and column lane % 32.
    tiles = by_lane.reshape(down, across, 2, _TILE, 2, 8).transpose(0, 4, 2, 5, 1, 3)
    return tiles.reshape(down * _TILE, across * _TILE)[:rows, :columns]


def kept(p_drop: float, numbers: Array) -> Array:
    """bool: which probabilities stay."""
    return numbers <= np.floor(np.float32(1 - p_drop) * np.float32(255))
