# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Problems of attention; and those that a kernel is verified on: small, around its tiles."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.emulation.harness.kinds.attention import Attention
    from tests.emulation.harness.launches import Instance

Window = tuple[int, int]

# attn_mask
MASK_NONE, MASK_TOP_LEFT, MASK_BOTTOM_RIGHT = range(3)


@dataclasses.dataclass(frozen=True)
class Case:
    """One problem.

    `lengths` has (seqlen_q, seqlen_k) of every sequence, all equal in batch mode. `window` counts
    keys to the left and right of the diagonal that `mask` names; -1 is all of them. Keys listed in
    `vanishing` have a score of -inf, or as good as that, with every query. Scores are multiplied by
    `scale`: None is 1 / sqrt(head size).

    The fields after it are for kernels with features beyond that: a bias ("elementwise", "alibi"),
    the probability of dropout, the cap of the scores (0: none), the least seqlen_q that is skipped
    (sequences up to it keep what their outputs held), the number of parts that keys are split into,
    the keys per page (0: no pages), and of what appends to a cache (kinds/append.py) the new keys
    of each sequence, and the rotary embedding.
    """

    name: str
    lengths: tuple[tuple[int, int], ...]
    heads_q: int = 2
    heads_k: int = 1
    mask: int = MASK_NONE
    window: Window = (-1, -1)
    amplitude: float = 1.0
    vanishing: tuple[int, ...] = ()
    scale: float | None = None
    bias: str = "none"
    p_drop: float = 0.0
    soft_cap: float = 0.0
    skipped_seqlen_q: int = 0
    splits: int = 1
    page_size: int = 0
    new_keys: int = 0
    rotary: str = "none"

    @property
    def total_q(self) -> int:
        return sum(q for q, _ in self.lengths)

    @property
    def total_k(self) -> int:
        return sum(k for _, k in self.lengths)

    def starts(self) -> list[tuple[int, int]]:
        """Where each sequence starts, and as the last entry where they end."""
        out = [(0, 0)]
        for q, k in self.lengths:
            out.append((out[-1][0] + q, out[-1][1] + k))
        return out


def _pair(length_q: int, length_k: int, batch: int = 1) -> tuple[tuple[int, int], ...]:
    return ((length_q, length_k),) * batch


def _batch_cases(q: int, k: int) -> list[Case]:
    return [
        Case("one by one", _pair(1, 1)),
        Case("17, tile-1", _pair(17, k - 1), heads_q=1),
        Case("tile-1, tile+1", _pair(q - 1, k + 1)),
        Case("tile, tile; two batches", _pair(q, k, batch=2), heads_q=1),
        Case("tile+1, 17; heads 4:2", _pair(q + 1, 17), heads_q=4, heads_k=2),
    ]


def _group_cases(q: int, k: int) -> list[Case]:
    return [
        Case("one by one", _pair(1, 1)),
        Case("empty sequences", ((17, 0), (3, 3), (0, 0), (q + 1, k + 1), (0, 0))),
        Case("keys without a query", ((0, 5), (q + 9, 17))),
        Case("tile-1, tile, tile+1", ((q - 1, k + 1), (q, k - 1), (q + 1, 17)), heads_q=1),
        Case("long and short; heads 4:2", ((2, 2 * k + 1), (q + 1, 1)), heads_q=4, heads_k=2),
    ]


def _several_tiles(instance: Instance) -> Case:
    """The case that schedules are compared on, and that statistics are taken from."""
    q, k = instance.tile_seqlen_q or 64, instance.tile_seqlen_k or 64
    shape = {"lengths": _pair(2 * q + 1, 3 * k - 1), "heads_q": 2, "heads_k": 1}
    if instance.group_mode:
        shape["lengths"] = ((2 * q + 1, 3 * k - 1), (17, 0), (q, k))
    if not instance.mask:
        return Case("several tiles", **shape)
    return Case("several tiles, causal", mask=MASK_BOTTOM_RIGHT, window=(-1, 0), **shape)


def _round_up(length: int, tile: int) -> int:
    return -(-length // tile) * tile


def _for_instance(case: Case, instance: Instance, kind: Attention) -> Case:
    """The case with all that the instance does beyond plain attention, and lengths it can take."""
    tile_q = 1 if kind.any_length or instance.pad_seqlen_q else instance.tile_seqlen_q or 1
    fills_tiles = kind.checks_keys and not (kind.any_length or instance.pad_seqlen_k)
    tile_k = instance.tile_seqlen_k or 1 if fills_tiles else 1
    # Backward's workgroups for few queries have all of them; forward's are as many as it takes.
    most_q = (kind.backward and instance.max_seqlen_q) or max(a for a, _ in case.lengths)
    lengths = tuple(
        (_round_up(min(a, most_q), tile_q), _round_up(b, tile_k)) for a, b in case.lengths
    )
    skips = instance.skip_min_seqlen_q and instance.group_mode
    mask = case.mask
    if instance.mask and instance.bias == "alibi" and mask == MASK_NONE:
        # The mask says what ALiBi counts from; its window is open.
        mask = MASK_BOTTOM_RIGHT
    return dataclasses.replace(
        case,
        lengths=lengths,
        mask=mask,
        bias=instance.bias,
        p_drop=0.25 if instance.dropout else 0.0,
        soft_cap=3.0 if instance.logits_soft_cap else 0.0,
        skipped_seqlen_q=2 if skips else 0,
        splits=kind.splits,
        page_size=kind.page_size(instance),
    )


def attention_cases(instance: Instance, kind: Attention) -> list[Case]:
    """All cases of an instance of attention, that of several tiles first."""
    fitting = {}
    for case in _all_cases(instance, kind):
        fits = _for_instance(case, instance, kind)
        # Where lengths must fill their tiles, some cases are the same.
        fitting.setdefault(dataclasses.replace(fits, name=""), fits)
    return list(fitting.values())


def _all_cases(instance: Instance, kind: Attention) -> list[Case]:
    q, k = instance.tile_seqlen_q or 64, instance.tile_seqlen_k or 64
    out = [_several_tiles(instance)]
    out += (_group_cases if instance.group_mode else _batch_cases)(q, k)
    # Every key but the last of the first tile and one in the next.
    vanishing = tuple(j for j in range(k + 1) if j not in (k - 1, k))
    scores = [
        Case("large magnitudes", _pair(33, k + 9), amplitude=100.0),
        Case("scores of -inf", _pair(33, k + 1), vanishing=(3, 4, k - 2)),
        Case("scores of -inf, a tile but one", _pair(17, k + 1), vanishing=vanishing),
        Case("scores of -inf, all of a tile", _pair(17, k + 1), vanishing=tuple(range(k))),
    ]
    if kind.scores:
        out += scores
    if instance.mask:
        out += [
            Case("window 40:10, rows without a key", _pair(q + 9, k // 2), mask=MASK_BOTTOM_RIGHT,
                 window=(40, 10)),
            Case("top-left window 7:3", _pair(q + 9, k + 9), mask=MASK_TOP_LEFT, window=(7, 3)),
            Case("diagonal only", _pair(33, 2 * k), mask=MASK_BOTTOM_RIGHT, window=(0, 0)),
            Case("causal, first keys -inf", _pair(33, 33), mask=MASK_TOP_LEFT, window=(-1, 0),
                 vanishing=(0, 1, 9)),
        ]  # fmt: skip
    return out
