# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Key-value caches once more, in float64, one sequence at a time: rotary embedding and pages."""

from __future__ import annotations

from typing import Any

import numpy

# Greatest error that passes, in units of the last place of the dtype.
GATES = {"float16": 1.0, "bfloat16": 1.0, "float32": 8.0}


def draw(*shape: int, dtype: Any = numpy.float32, seed: int = 0) -> Any:
    return numpy.random.default_rng((seed, *shape)).standard_normal(shape).astype(dtype)


def numbers(*given: Any) -> Any:
    return numpy.array(given, numpy.int32)


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
