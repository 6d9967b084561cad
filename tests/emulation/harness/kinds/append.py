# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Appending to a key-value cache: cases, inputs, memory, and the expected content of caches in
float64.

In a Case `lengths` has (seqlen_q, keys in the cache before) of every sequence, `new_keys` how many
each gets, and `page_size` the keys per page (0: in place).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from tests.emulation.harness.arguments import FINITE
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, MASK_NONE, Case
from tests.emulation.harness.kinds.kind import Array, Kind
from tests.emulation.harness.launches import Instance
from tests.emulation.harness.reference import (
    SMALLEST,
    UNIT,
    Expected,
    Inputs,
    from_storage,
    to_storage,
)

if TYPE_CHECKING:
    from tests.emulation.harness.arguments import Arguments

_PAGE_SIZE = 64  # the least that a tile of new keys may take


def _cases(instance: Instance) -> list[Case]:
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


def _tokens(case: Case) -> int:
    """Those that tables of rotary embedding must have."""
    return max(k + max(q, case.new_keys, 1) for q, k in case.lengths)


def _pages(case: Case) -> Array:
    """Each sequence's pages, or its entry, in a shuffled order; one more belongs to none."""
    longest = max(k + case.new_keys for _, k in case.lengths)
    each = -(-longest // case.page_size) if case.page_size else 1
    order = np.random.default_rng(1).permutation(len(case.lengths) * each + 1)
    return order[:-1].reshape(len(case.lengths), each)


def _rows(case: Case) -> int:
    """Keys that a page, or an entry, has room for."""
    return case.page_size or max(k + case.new_keys for _, k in case.lengths)


def _draw(case: Case, dtype: str, head_sizes: tuple[int, int], seed: int) -> Inputs:
    """q and, as k and v, what is appended: sequences one after the other."""
    rng = np.random.default_rng(seed)
    new = len(case.lengths) * case.new_keys
    q = rng.standard_normal((case.total_q, case.heads_q, head_sizes[0]))
    k, v = (rng.standard_normal((new, case.heads_k, size)) for size in head_sizes)
    inputs = Inputs(*(to_storage(x, dtype) for x in (q, k, v, q[:0])), scale=np.float32(1))
    if case.rotary != "none":
        pairs = 16 * ((head_sizes[0] - 8) // 16 or 1) // 2  # not all of a head
        angles = rng.uniform(-4, 4, (_tokens(case), pairs))
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
        rotated = np.abs(value[..., : 2 * pairs])
        unit[..., : 2 * pairs] += UNIT[dtype] * (rotated + SMALLEST[dtype])
    return Expected(value, unit + 1e-9)


def _expected(case: Case, dtype: str, inputs: Inputs) -> dict[str, Expected]:
    """k and v as the caches' rows, one after the other; NaN where they must stay as they were."""
    at, token = [], []
    for place, (_, length) in zip(_pages(case), case.lengths, strict=True):
        for key in range(length, length + case.new_keys):
            at.append(place[key // _rows(case)] * _rows(case) + key % _rows(case))
            token.append(key)
    out = {}
    for name, stored, turned in (("k", inputs.k, True), ("v", inputs.v, False)):
        shape = ((_pages(case).size + 1) * _rows(case), *stored.shape[1:])
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


class Append(Kind):
    """New keys and values, and queries where they are rotated."""

    def cases(self, instance: Instance) -> list[Case]:
        return _cases(instance)

    def draw(
        self, instance: Instance, case: Case, head_sizes: tuple[int, int], seed: int
    ) -> Inputs:
        return _draw(case, instance.dtype, head_sizes, seed)

    def expected(
        self, instance: Instance, case: Case, inputs: Inputs, seed: int
    ) -> dict[str, Expected]:
        return _expected(case, instance.dtype, inputs)

    def outputs(self, instance: Instance) -> tuple[str, ...]:
        return ("k", "v") if instance.rotary == "none" else ("k", "v", "q")

    def place(self, to: Arguments, inputs: Inputs) -> None:
        """To a cache that was used before, as nothing but finite numbers in it says."""
        case, launch, features = to.case, to.launch, to.launch.features
        places, rows = _pages(case), _rows(case)
        launch.problem.seqlen_k = rows * (places.shape[1] if case.page_size else 1)
        for name, new in (("k", inputs.k), ("v", inputs.v)):
            used = np.full(((places.size + 1) * rows, *new.shape[1:]), FINITE, np.uint16)
            setattr(launch, name, to.tensor(name, used, rows, output=True))
            setattr(features, f"{name}_new", to.tensor(f"{name}_new", new, case.new_keys))
        launch.q = to.tensor("q", inputs.q, to.length_q, output="q" in to.outputs)
        lengths = np.array([k for _, k in case.lengths], np.int32)
        features.seqlens_k = to.place("seqlens_k", lengths)
        features.seqlen_new = case.new_keys
        where = to.place("places", places.astype(np.int32))
        if case.page_size:
            features.block_table, features.page_size = where, case.page_size
            features.block_table_stride = places.shape[1]
        else:
            features.batch_index = where
        if inputs.rotary_cos is not None:
            features.rotary_size = 2 * inputs.rotary_cos.shape[1]
            features.rotary_cos = to.place("rotary_cos", inputs.rotary_cos)
            features.rotary_sin = to.place("rotary_sin", inputs.rotary_sin)
