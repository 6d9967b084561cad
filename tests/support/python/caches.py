# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention, rotary embedding and pages once more, in float64, one sequence at a time."""

from __future__ import annotations

from typing import Any

import numpy

# Greatest error that passes, in units of the last place of the dtype.
GATES = {"float16": 1.0, "bfloat16": 1.0, "float32": 8.0}


def draw(*shape: int, dtype: Any = numpy.float32, seed: int = 0) -> Any:
    return numpy.random.default_rng((seed, *shape)).standard_normal(shape).astype(dtype)


def numbers(*given: Any) -> Any:
    return numpy.array(given, numpy.int32)


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    slopes: Any = None,
) -> tuple[Any, Any]:
    """(out [seqlen, heads, head_size_v], lse [heads, seqlen]) of one sequence."""
    q, k, v = (x.astype(numpy.float64) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    left, right = window[0], 0 if causal else window[1]
    rows = numpy.arange(len(q))[:, None] + len(k) - len(q)
    columns = numpy.arange(len(k))[None, :]
    seen = numpy.ones((len(q), len(k)), bool)
    if left >= 0:
        seen &= columns >= rows - left
    if right >= 0:
        seen &= columns <= rows + right
    wide_k, wide_v = numpy.repeat(k, group, axis=1), numpy.repeat(v, group, axis=1)
    scores = numpy.einsum("ihd,jhd->hij", q, wide_k) / q.shape[2] ** 0.5
    if softcap:
        scores = softcap * numpy.tanh(scores / softcap)
    if slopes is not None:
        distance = columns if causal else -abs(rows - columns)
        scores = scores + slopes[:, None, None].astype(numpy.float64) * distance
    scores = numpy.where(seen, scores, -numpy.inf)
    top = numpy.max(scores, axis=2, keepdims=True, initial=-1e300)
    weights = numpy.exp(scores - top)
    total = weights.sum(axis=2, keepdims=True)
    out = numpy.einsum("hij,jhd->ihd", weights / numpy.where(total == 0, 1, total), wide_v)
    with numpy.errstate(divide="ignore"):
        lse = numpy.log(total[..., 0]) + numpy.where(total[..., 0] == 0, 0, top[..., 0])
    return out, lse


def rotated(x: Any, tokens: Any, cos: Any, sin: Any, interleaved: bool) -> Any:
    """x, [seqlen, heads, head_size], each row as the token that it is."""
    made = x.astype(numpy.float64)
    pairs = cos.shape[1]
    first = slice(0, 2 * pairs, 2) if interleaved else slice(0, pairs)
    second = slice(1, 2 * pairs, 2) if interleaved else slice(pairs, 2 * pairs)
    a, b = made[..., first].copy(), made[..., second].copy()
    c, s = (table.astype(numpy.float64)[tokens][:, None, :] for table in (cos, sin))
    made[..., first], made[..., second] = a * c - b * s, a * s + b * c
    return made


def in_pages(rows: Any, page_size: int, spare: int, seed: int = 0) -> tuple[Any, Any]:
    """(pages, block_table): rows, [batch, room, ...], in pages of a random order."""
    batch, room = rows.shape[:2]
    pages = room // page_size
    order = numpy.random.default_rng(seed).permutation(batch * pages + spare)[: batch * pages]
    made = numpy.full((batch * pages + spare, page_size, *rows.shape[2:]), numpy.nan, rows.dtype)
    made[order] = rows.reshape(batch * pages, page_size, *rows.shape[2:])
    return made, order.reshape(batch, pages).astype(numpy.int32)


def gathered(pages: Any, table: Any) -> Any:
    """[batch, room, ...]: in_pages the other way."""
    return pages[table].reshape(len(table), -1, *pages.shape[2:])
