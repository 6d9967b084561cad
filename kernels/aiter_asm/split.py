# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Causal attention as sequences of one tile each, for objects in group mode.

A workgroup of a causal object takes the tiles i and n - 1 - i of a sequence, and gfx950's objects
do not order what they do with LDS for one and the other (defects P and Q). A sequence of one tile
has no second: each tile becomes a sequence of its own. Sequences then share keys, or queries, which
the separate arguments of lengths (`seqstart_*`) and of places (`padded_seqstart_*`) allow.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

Lengths = Sequence[tuple[int, int]]


@dataclasses.dataclass(frozen=True)
class Piece:
    """A sequence: the rows where its queries and keys start, and how many there are."""

    first_q: int
    first_k: int
    seqlen_q: int
    seqlen_k: int


@dataclasses.dataclass(frozen=True)
class Arguments:
    """The arrays of sequences that an object gets, each of one more than there are pieces."""

    seqstart_q: list[int]
    seqstart_k: list[int]
    padded_seqstart_q: list[int]
    padded_seqstart_k: list[int]

    @classmethod
    def of(cls, pieces: Sequence[Piece]) -> Arguments:
        def starts(lengths: list[int]) -> list[int]:
            return [0, *itertools.accumulate(lengths)]

        # Places behind the last are not used.
        return cls(
            starts([piece.seqlen_q for piece in pieces]),
            starts([piece.seqlen_k for piece in pieces]),
            [*(piece.first_q for piece in pieces), 0],
            [*(piece.first_k for piece in pieces), 0],
        )


def _placed(lengths: Lengths) -> list[tuple[int, int, int, int]]:
    """first_q, first_k, seqlen_q and seqlen_k of sequences that follow each other."""
    first_q = first_k = 0
    out = []
    for seqlen_q, seqlen_k in lengths:
        out.append((first_q, first_k, seqlen_q, seqlen_k))
        first_q, first_k = first_q + seqlen_q, first_k + seqlen_k
    return out


def forward(lengths: Lengths, tile_q: int) -> list[Piece]:
    """Of causal attention, aligned to the bottom right: each tile of queries, with the keys that
    its last one sees. A piece without keys stands for queries that see none."""
    return [
        Piece(
            first_q + row,
            first_k,
            min(tile_q, seqlen_q - row),
            max(0, seqlen_k - seqlen_q + min(row + tile_q, seqlen_q)),
        )
        for first_q, first_k, seqlen_q, seqlen_k in _placed(lengths)
        for row in range(0, seqlen_q, tile_q)
    ]


def backward(
    lengths: Lengths, tile_k: int, bottom_right: bool
) -> tuple[list[Piece], list[Piece], list[Piece]]:
    """Of the gradient of causal attention, aligned to the top left or to the bottom right: pieces
    of one tile of keys for an object that is causal from the top left, pieces for one without a
    mask, and pieces of keys that no query sees, whose dk and dv are zero."""
    causal: list[Piece] = []
    whole: list[Piece] = []
    unseen: list[Piece] = []
    for first_q, first_k, seqlen_q, seqlen_k in _placed(lengths):
        further = seqlen_k - seqlen_q if bottom_right else 0
        seen_by_all, blind = max(further, 0), max(-further, 0)
        if not seqlen_q:
            seen_by_all = 0
        if seen_by_all:
            whole.append(Piece(first_q, first_k, seqlen_q, seen_by_all))
        for key in range(seen_by_all, seqlen_k, tile_k):
            row = blind + key - seen_by_all
            tile = min(tile_k, seqlen_k - key)
            piece = Piece(first_q + row, first_k + key, max(seqlen_q - row, 0), tile)
            (causal if piece.seqlen_q else unseen).append(piece)
    return causal, whole, unseen
