# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention in float64, one sequence at a time: the reference of all tests in Python.

Arrays are [tokens, heads, head size]; heads of k and v may be shared by heads of q.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

__all__ = ["Weights", "attention", "gradients", "probabilities", "relative_error", "seen"]


def seen(
    queries: int, keys: int, window: tuple[int, int] = (-1, -1), bottom_right: bool = True
) -> Any:
    """The keys that each query sees, bool [queries, keys]: up to `left` before its diagonal and
    `right` behind, -1: all. The diagonal of query i is key i, or with bottom_right the key
    i + keys - queries."""
    shift = keys - queries if bottom_right else 0
    distance = numpy.arange(keys)[None, :] - (numpy.arange(queries)[:, None] + shift)
    left, right = window
    visible = numpy.ones((queries, keys), bool)
    if left >= 0:
        visible &= distance >= -left
    if right >= 0:
        visible &= distance <= right
    return visible


class Weights(NamedTuple):
    """p: probabilities, 0 in rows without a key; total: the sums by which they were divided, of
    exp(score - top); lse: -inf in rows without a key."""

    p: Any
    top: Any
    total: Any
    lse: Any


def probabilities(scores: Any) -> Weights:
    """The softmax over the last dimension of masked scores, which are -inf."""
    top = scores.max(axis=-1, keepdims=True, initial=-numpy.inf)
    top = numpy.where(numpy.isfinite(top), top, 0.0)
    p = numpy.exp(scores - top)
    total = p.sum(axis=-1, keepdims=True)
    with numpy.errstate(divide="ignore"):
        lse = (top + numpy.log(total))[..., 0]
    return Weights(p / numpy.where(total == 0.0, 1.0, total), top, total, lse)


def _wide(array: Any, group: int = 1) -> Any:
    return numpy.repeat(numpy.asarray(array).astype(numpy.float64), group, axis=1)


def _weights(
    q: Any,
    k: Any,
    scale: float | None,
    causal: bool,
    window: tuple[int, int],
    softcap: float,
    slopes: Any,
    sink: Any,
) -> Weights:
    """Those of a sink are last, where there is one: of a key that every query sees."""
    scores = numpy.einsum("ihd,jhd->hij", q, k)
    scores *= q.shape[2] ** -0.5 if scale is None else scale
    if softcap:
        scores = softcap * numpy.tanh(scores / softcap)
    queries, keys = scores.shape[1:]
    if slopes is not None:
        columns = numpy.arange(keys)[None, :]
        rows = numpy.arange(queries)[:, None] + keys - queries
        distance = columns if causal else -abs(rows - columns)
        scores = scores + slopes[:, None, None].astype(numpy.float64) * distance
    left, right = window[0], 0 if causal else window[1]
    scores = numpy.where(seen(queries, keys, (left, right)), scores, -numpy.inf)
    if sink is not None:
        column = numpy.broadcast_to(_one_each(sink), (*scores.shape[:2], 1))
        scores = numpy.concatenate([scores, column], axis=2)
    return probabilities(scores)


def _one_each(sink: Any) -> Any:
    return numpy.asarray(sink).astype(numpy.float64)[:, None, None]


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    scale: float | None = None,
    causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    slopes: Any = None,
    sink: Any = None,
    kept: Any = 1.0,
) -> tuple[Any, Any]:
    """(out [seqlen, heads, head_size_v], lse [heads, seqlen]). scale: None: 1 / sqrt(head size).
    kept: of dropout, factors [heads, queries, keys] of weights."""
    group = q.shape[1] // k.shape[1]
    weights = _weights(_wide(q), _wide(k, group), scale, causal, window, softcap, slopes, sink)
    p = weights.p[..., : len(k)] * kept
    return numpy.einsum("hij,jhd->ihd", p, _wide(v, group)), weights.lse


def gradients(
    dout: Any,
    q: Any,
    k: Any,
    v: Any,
    *,
    scale: float | None = None,
    causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    sink: Any = None,
    kept: Any = 1.0,
) -> tuple[Any, ...]:
    """(dq, dk, dv) of sum(out * dout), with a sink and its gradient. kept: see attention."""
    group = q.shape[1] // k.shape[1]
    dout, q, wide_k, wide_v = _wide(dout), _wide(q), _wide(k, group), _wide(v, group)
    p = _weights(q, wide_k, scale, causal, window, 0.0, None, sink).p
    dp = numpy.zeros_like(p)  # a sink has no value
    dp[..., : len(k)] = numpy.einsum("ihd,jhd->hij", dout, wide_v) * kept
    ds = p * (dp - (p * dp).sum(axis=2, keepdims=True))
    of_sink = () if sink is None else (ds[..., -1].sum(axis=1),)
    p, ds = p[..., : len(k)] * kept, ds[..., : len(k)]
    ds = ds * (q.shape[2] ** -0.5 if scale is None else scale)
    dk, dv = numpy.einsum("hij,ihd->jhd", ds, q), numpy.einsum("hij,ihd->jhd", p, dout)
    shared = (x.reshape(len(x), k.shape[1], group, x.shape[2]).sum(axis=2) for x in (dk, dv))
    return numpy.einsum("hij,jhd->ihd", ds, wide_k), *shared, *of_sink


def relative_error(got: Any, want: Any) -> float:
    """Root of the mean square, as a part of the result's."""
    error = numpy.asarray(got, numpy.float64) - want
    return float(numpy.sqrt((error**2).mean() / (want**2).mean()))
