# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""What appends to a key-value cache: cases, inputs, and in float64 what must lie where.

In a Case `lengths` has (seqlen_q, keys in the cache before) of every sequence, `new_keys` how many
each gets, and `page_size` the keys per page (0: in place).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, MASK_NONE, Case
from tests.emulation.harness.reference import UNIT, Expected, Inputs, from_storage, to_storage

if TYPE_CHECKING:
    from tests.emulation.harness.launches import Instance

Array = np.ndarray
_PAGE_SIZE = 64  # the least that a tile of new keys may take


def all_cases(instance: Instance) -> list[Case]:
    """All cases of an instance, that of several tiles first."""
    tile_q = 1 if instance.pad_seqlen_q else instance.tile_seqlen_q
    out = [
        Case("several tiles", ((129, 190), (129, 0)), new_keys=130, mask=MASK_BOTTOM_RIGHT),
        Case("one by one", ((1, 0),), new_keys=1),
        Case("behind a full page; heads 4:2", ((1, 128), (1, 64)), 4, 2, new_keys=1),
        Case("over the end of a page", ((17, 63), (17, 1), (17, 64)), new_keys=64),
        Case("more queries than keys", ((70, 3),), new_keys=2, mask=MASK_BOTTOM_RIGHT),
        Case("more keys than queries", ((3, 100),), new_keys=65),
        Case("queries alone", ((5, 9),), new_keys=0, mask=MASK_BOTTOM_RIGHT),
    ]
    return [
        dataclasses.replace(
            case,
            lengths=tuple((-(-q // tile_q) * tile_q, k) for q, k in case.lengths),
            page_size=_PAGE_SIZE if instance.paged_kv else 0,
            rotary=instance.rotary,
        )
        for case in out
        if case.new_keys or instance.rotary != "none"
    ]


def tokens(case: Case) -> int:
    """Those that tables of rotary embedding must have."""
    return max(k + max(q, case.new_keys, 1) for q, k in case.lengths)


def pages(case: Case) -> Array:
    """Each sequence's pages, or its entry, in a shuffled order; one more is nobody's."""
    longest = max(k + case.new_keys for _, k in case.lengths)
    each = -(-longest // case.page_size) if case.page_size else 1
    order = np.random.default_rng(1).permutation(len(case.lengths) * each + 1)
    return order[:-1].reshape(len(case.lengths), each)


def rows(case: Case) -> int:
    """Keys that a page, or an entry, has room for."""
    return case.page_size or max(k + case.new_keys for _, k in case.lengths)


def draw_append(case: Case, dtype: str, head_sizes: tuple[int, int], seed: int) -> Inputs:
    """q and, as k and v, what is appended: sequences one after the other."""
    rng = np.random.default_rng(seed)
    new = len(case.lengths) * case.new_keys
    q = rng.standard_normal((case.total_q, case.heads_q, head_sizes[0]))
    k, v = (rng.standard_normal((new, case.heads_k, size)) for size in head_sizes)
    inputs = Inputs(*(to_storage(x, dtype) for x in (q, k, v, q[:0])), scale=np.float32(1))
    if case.rotary != "none":
        pairs = 16 * ((head_sizes[0] - 8) // 16 or 1) // 2  # not all of a head
        angles = rng.uniform(-4, 4, (tokens(case), pairs))
        inputs.rotary_cos = to_storage(np.cos(angles), dtype)
        inputs.rotary_sin = to_storage(np.sin(angles), dtype)
    return inputs


def _rotated(case: Case, dtype: str, inputs: Inputs, stored: Array, token: Array) -> Expected:
    """[rows][heads][d], each row as the token of its number; rounded once, after float32."""
    value = from_storage(stored, dtype)
    unit = np.zeros_like(value)
    if case.rotary != "none":
        cos, sin = (
            from_storage(table, dtype)[token][:, None]
            for table in (inputs.rotary_cos, inputs.rotary_sin)
        )
        pairs = cos.shape[-1]
        first, second = slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
        if case.rotary == "halves":
            first, second = slice(0, pairs), slice(pairs, 2 * pairs)
        x, y = value[..., first].copy(), value[..., second].copy()
        value[..., first], value[..., second] = x * cos - y * sin, y * cos + x * sin
        spread = np.abs(x) + np.abs(y)
        unit[..., first] = unit[..., second] = 2 * UNIT["fp32"] * spread
        unit[..., : 2 * pairs] += UNIT[dtype] * np.abs(value[..., : 2 * pairs])
    return Expected(value, unit + 1e-9)


def expected_append(case: Case, dtype: str, inputs: Inputs) -> dict[str, Expected]:
    """k and v as the caches' rows, one after the other; NaN where they must stay as they were."""
    at, token = [], []
    for place, (_, length) in zip(pages(case), case.lengths, strict=True):
        for key in range(length, length + case.new_keys):
            at.append(place[key // rows(case)] * rows(case) + key % rows(case))
            token.append(key)
    out = {}
    for name, stored, turned in (("k", inputs.k, True), ("v", inputs.v, False)):
        shape = ((pages(case).size + 1) * rows(case), *stored.shape[1:])
        own = case if turned else dataclasses.replace(case, rotary="none")
        new = _rotated(own, dtype, inputs, stored, np.array(token, int))
        out[name] = Expected(np.full(shape, np.nan), np.ones(shape))
        out[name].value[at], out[name].unit[at] = new.value, new.unit
    if case.rotary != "none":
        position = [
            length + (i if case.mask != MASK_NONE else 0)
            for queries, length in case.lengths
            for i in range(queries)
        ]
        out["q"] = _rotated(case, dtype, inputs, inputs.q, np.array(position, int))
    return out
