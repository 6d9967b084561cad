# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""LayerNorm, RMSNorm and softmax from their definitions, dense and in float64.

Written from aiter/norm.h alone. Matrices are [rows, columns], values of a row [rows, 1].
"""

from __future__ import annotations

import numpy

from tests.hostile.oracle import Array, Exact

MASKED = -10000.0


def _wide(array: Array) -> Array:
    return array.astype(numpy.float64)


def norm_forward(
    h: Array, factor: Array, beta: Array | float, epsilon: float, layer: bool
) -> tuple[Exact, Exact, Exact]:
    """(y, mean, rstd). Where a row has no variance and epsilon is 0, it is not finite."""
    h = _wide(h)
    mean = h.mean(axis=1, keepdims=True) if layer else numpy.zeros((len(h), 1))
    variance = ((h - mean) ** 2).mean(axis=1, keepdims=True) + numpy.float64(numpy.float32(epsilon))
    with numpy.errstate(divide="ignore", invalid="ignore"):
        rstd = 1.0 / numpy.sqrt(variance)
        # The variance is uncertain by the digits that cancel in h - mean.
        condition = 1.0 + (h * h).mean(axis=1, keepdims=True) / variance
        y = (h - mean) * rstd * factor + beta
        magnitude = (abs(h) + abs(mean)) * rstd * abs(factor) * condition + abs(beta)
        return (
            Exact(y, magnitude),
            Exact(mean, abs(h).mean(axis=1, keepdims=True)),
            Exact(rstd, rstd * condition),
        )


def norm_backward(
    x: Array, dy: Array, mean: Array, rstd: Array, factor: Array, dh: Array | float, layer: bool
) -> tuple[Exact, Exact, Exact]:
    """(dx, dgamma, dbeta), with the mean and the rstd that were stored."""
    x, dy, mean, rstd = (_wide(a) for a in (x, dy, mean, rstd))
    xhat, about_xhat = (x - mean) * rstd, (abs(x) + abs(mean)) * abs(rstd)
    wdy, about_wdy = dy * factor, abs(dy) * abs(factor)
    along = (wdy * xhat).mean(axis=1, keepdims=True)
    about_along = (about_wdy * about_xhat).mean(axis=1, keepdims=True)
    shift = wdy.mean(axis=1, keepdims=True) if layer else 0.0
    about_shift = about_wdy.mean(axis=1, keepdims=True)
    dx = (wdy - along * xhat - shift) * rstd + dh
    about_dx = (about_wdy + about_along * about_xhat + about_shift) * abs(rstd) + abs(dh)
    return (
        Exact(dx, about_dx),
        Exact((dy * xhat).sum(axis=0), (abs(dy) * about_xhat).sum(axis=0)),
        Exact(dy.sum(axis=0), abs(dy).sum(axis=0)),
    )


def allowed(rows: int, columns: int, queries: int, causal: bool) -> Array:
    """bool [rows, columns]: what takes part."""
    if not causal:
        return numpy.ones((rows, columns), bool)
    last = numpy.arange(rows)[:, None] % queries + columns - queries
    return numpy.arange(columns)[None, :] <= last


def softmax_forward(x: Array, scale: float, masked: Array, seen: Array) -> Exact:
    scores = _wide(x) * numpy.float64(numpy.float32(scale))
    scores = numpy.where(seen, numpy.where(masked, MASKED, scores), -numpy.inf)
    top = scores.max(axis=1, keepdims=True)
    nothing = ~seen.any(axis=1, keepdims=True) | (
        masked.any(axis=1, keepdims=True) & (top == MASKED)
    )
    with numpy.errstate(invalid="ignore"):
        weights = numpy.where(seen, numpy.exp(scores - top), 0.0)
        y = weights / weights.sum(axis=1, keepdims=True)
    y = numpy.where(nothing, 0.0, y)
    return Exact(
        y, y * (1.0 + numpy.where(seen, abs(scores - numpy.where(nothing, 0.0, top)), 0.0))
    )


def softmax_backward(y: Array, dy: Array, scale: float, seen: Array) -> Exact:
    y, dy = numpy.where(seen, _wide(y), 0.0), numpy.where(seen, _wide(dy), 0.0)
    factor = numpy.float64(numpy.float32(scale))
    total = (y * dy).sum(axis=1, keepdims=True)
    about = (abs(y) * abs(dy)).sum(axis=1, keepdims=True)
    return Exact(factor * y * (dy - total), abs(factor) * abs(y) * (abs(dy) + about))
