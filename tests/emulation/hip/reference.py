# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention in float64: one sequence, forward and backward, straight from the definition."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
# Half a unit in the last place of the storage formats, relative.
UNITS = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


@dataclasses.dataclass
class Attention:
    out: Array  # [seqlen_q, heads_q, head_size]
    lse: Array  # [heads_q, seqlen_q]
    dq: Array
    dk: Array  # summed over the query heads of a group
    dv: Array


def visible(seqlen_q: int, seqlen_k: int, window: tuple[int, int]) -> Array:
    """[seqlen_q, seqlen_k]: which keys a query sees; windows are bottom-right aligned."""
    diagonal = np.arange(seqlen_q)[:, None] + seqlen_k - seqlen_q
    keys, (left, right) = np.arange(seqlen_k)[None], window
    seen = np.ones((seqlen_q, seqlen_k), bool)
    if left >= 0:
        seen &= keys >= diagonal - left
    if right >= 0:
        seen &= keys <= diagonal + right
    return seen


def attention(q: Array, k: Array, v: Array, dout: Array, window: tuple[int, int]) -> Attention:
    """Of [seqlen, heads, head_size] arrays of a storage dtype."""
    storage, group = q.dtype, q.shape[1] // k.shape[1]
    q, k, v, dout = (x.astype(np.float64) for x in (q, k, v, dout))
    keys, values = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scale = q.shape[2] ** -0.5
    scores = np.einsum("ihd,jhd->hij", q, keys) * scale
    scores = np.where(visible(len(q), len(k), window), scores, -np.inf)
    top = scores.max(axis=2, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0.0)
    p = np.exp(scores - top)
    total = p.sum(axis=2, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (top + np.log(total))[..., 0]
    p /= np.where(total == 0, 1.0, total)
    out = np.einsum("hij,jhd->ihd", p, values)
    # The backward pass is given the output as it is stored.
    delta = np.einsum("ihd,ihd->hi", dout, out.astype(storage).astype(np.float64))
    ds = p * (np.einsum("ihd,jhd->hij", dout, values) - delta[..., None])

    def summed(x: Array) -> Array:
        return x.reshape(len(x), k.shape[1], group, k.shape[2]).sum(axis=2)

    return Attention(
        out, lse,
        np.einsum("hij,jhd->ihd", ds, keys) * scale,
        summed(np.einsum("hij,ihd->jhd", ds, q) * scale),
        summed(np.einsum("hij,ihd->jhd", p, dout)),
    )  # fmt: skip


def error(actual: Array, expected: Array, dtype: str) -> float:
    """Root mean square error relative to the expected array's, in half units of the storage dtype.

    Infinite where what is finite differs, or what is infinite or empty is not equal.
    """
    x = actual.astype(np.float64)
    finite = np.isfinite(expected)
    if x.shape != expected.shape or not (x[~finite] == expected[~finite]).all():
        return float("inf")
    if not np.isfinite(x[finite]).all():
        return float("inf")
    norm = float(np.linalg.norm(expected[finite]))
    distance = float(np.linalg.norm(x[finite] - expected[finite]))
    if norm == 0.0:
        return 0.0 if distance == 0.0 else float("inf")
    return distance / (norm * UNITS[dtype])
