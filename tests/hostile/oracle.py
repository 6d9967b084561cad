# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention from its definition, dense and in float64, and how far a result may be from it.

Written from aiter/attn.h alone. One sequence and one query head at a time, every score in a matrix:
slow, and with nothing to get wrong.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy

Array = Any  # numpy.ndarray, of any dtype

# Mantissa bits behind the point, the least exponent of a normal number, and the greatest number.
FORMATS = {
    "float16": (10, -14, 65504.0),
    "bfloat16": (7, -126, 3.3895313892515355e38),
    "float32": (23, -126, 3.4028234663852886e38),
    "float8_e4m3fn": (3, -6, 448.0),
    "float8_e5m2": (2, -14, 57344.0),
}
# The project's gates (python -m aiter_attn selftest), in units of the last place.
GATES = {
    "float16": 1.0,
    "bfloat16": 1.0,
    "float32": 8.0,
    "float8_e4m3fn": 1.0,
    "float8_e5m2": 1.0,
}
# The error that rounding in float64 may cause, relative to the summed magnitudes of the addends.
_WIDE = 2.0**-40


@dataclasses.dataclass(frozen=True)
class Mask:
    """Which keys a query sees: `left` and `right` of its diagonal, -1: all.

    The diagonal of query i is at key i, or with bottom_right at i + keys - queries.
    """

    left: int = -1
    right: int = -1
    bottom_right: bool = True

    def seen(self, queries: int, keys: int) -> Array:
        """bool [queries, keys]"""
        shift = keys - queries if self.bottom_right else 0
        distance = numpy.arange(keys)[None, :] - (numpy.arange(queries)[:, None] + shift)
        seen = numpy.ones((queries, keys), bool)
        if self.left >= 0:
            seen &= distance >= -self.left
        if self.right >= 0:
            seen &= distance <= self.right
        return seen


@dataclasses.dataclass
class Exact:
    """A value in float64, and the sum of its terms' magnitudes."""

    value: Array
    magnitude: Array


def _product(equation: str, a: Array, b: Array) -> Exact:
    return Exact(numpy.einsum(equation, a, b), numpy.einsum(equation, abs(a), abs(b)))


@dataclasses.dataclass(frozen=True)
class More:
    """Changes of scores and weights: a cap (0: none), a bias that is added behind it, and the
    factors of weights, 0 where they are dropped. Matrices are [queries, keys]."""

    cap: float = 0.0
    added: Any = 0.0
    kept: Any = 1.0

    def scores(self, products: Array) -> Array:
        capped = self.cap * numpy.tanh(products / self.cap) if self.cap else products
        return capped + self.added

    def slope(self, products: Array) -> Array:
        """The derivative of the scores by the scaled products."""
        return 1.0 - numpy.tanh(products / self.cap) ** 2 if self.cap else 1.0


PLAIN = More()


def forward(
    q: Array, k: Array, v: Array, scale: float, mask: Mask, more: More = PLAIN
) -> tuple[Exact, Exact]:
    """(out, lse) of one head of one sequence: q [queries, d], k [keys, d], v [keys, d_v]."""
    q, k, v = (x.astype(numpy.float64) for x in (q, k, v))
    scores = more.scores(q @ k.T * numpy.float64(numpy.float32(scale)))
    scores = numpy.where(mask.seen(len(q), len(k)), scores, -numpy.inf)
    top = scores.max(axis=1, initial=-numpy.inf, keepdims=True)
    top = numpy.where(numpy.isneginf(top), 0.0, top)
    weights = numpy.exp(scores - top)
    total = weights.sum(axis=1, keepdims=True)
    with numpy.errstate(divide="ignore"):
        lse = (top + numpy.log(total))[:, 0]
    weights = weights / numpy.where(total == 0.0, 1.0, total) * more.kept
    out = _product("ij,jd->id", weights, v)
    return out, Exact(lse, 1.0 + abs(top[:, 0]))


def backward(
    dout: Array,
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    lse: Array,
    scale: float,
    mask: Mask,
    more: More = PLAIN,
) -> tuple[Exact, Exact, Exact, Exact]:
    """(dq, dk, dv, dbias) of one head of one sequence, with out and lse as they were stored."""
    with numpy.errstate(over="ignore", invalid="ignore"):  # of an lse that is not of q and k
        inputs = (x.astype(numpy.float64) for x in (dout, q, k, v, out, lse))
        return _backward(*inputs, scale, mask, more)


def _backward(
    dout: Array,
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    lse: Array,
    scale: float,
    mask: Mask,
    more: More,
) -> tuple[Exact, Exact, Exact, Exact]:
    factor = numpy.float64(numpy.float32(scale))
    seen = mask.seen(len(q), len(k)) & ~numpy.isneginf(lse)[:, None]
    products = q @ k.T * factor
    exponent = numpy.where(seen, more.scores(products) - lse[:, None], -numpy.inf)
    p = numpy.exp(exponent)
    delta = (dout * out).sum(axis=1, keepdims=True)
    dscores = p * (dout @ v.T * more.kept - delta)
    # The terms of dscores cancel: their magnitudes are what rounding goes by.
    terms = p * (
        abs(dout) @ abs(v).T * more.kept + (abs(dout) * abs(out)).sum(axis=1, keepdims=True)
    )
    terms = terms * (1.0 + numpy.where(seen, abs(exponent) + abs(lse)[:, None], 0.0))
    inner, inner_terms = dscores * more.slope(products) * factor, terms * abs(factor)
    weights = p * more.kept
    return (
        Exact(inner @ k, inner_terms @ abs(k)),
        Exact(inner.T @ q, inner_terms.T @ abs(q)),
        Exact(
            weights.T @ dout,
            (weights * (1.0 + numpy.where(seen, abs(exponent), 0.0))).T @ abs(dout),
        ),
        Exact(dscores, terms),
    )


def ulp_errors(got: Array, want: Exact, dtype: str) -> Array:
    """The distance of `got` from `want` beyond float64's own rounding, in ulp of dtype.

    0 where both are the same infinity, or `want` rounds to it; infinite where one is NaN.
    """
    bits, least, greatest = FORMATS[dtype]
    got = got.astype(numpy.float64)
    value = want.value
    with numpy.errstate(divide="ignore", invalid="ignore", over="ignore"):
        exponent = numpy.floor(numpy.log2(abs(value)))
        ulp = numpy.exp2(numpy.maximum(exponent, least) - bits)
        distance = abs(got - value) - _WIDE * want.magnitude
        errors = numpy.maximum(distance, 0.0) / ulp
    # From here on rounding gives infinity: half an ulp beyond the greatest number.
    beyond = greatest + 2.0 ** (math.floor(math.log2(greatest)) - bits - 1)
    overflown = numpy.isinf(got) & (abs(value) >= beyond * (1 - _WIDE)) & (got * value > 0)
    errors = numpy.where((got == value) | overflown, 0.0, errors)
    return numpy.where(numpy.isnan(errors), numpy.inf, errors)


def require_equal(name: str, got: Array, want: Exact, dtype: str) -> None:
    """Raises AssertionError where any element is beyond the gate of its dtype."""
    if got.size == 0:
        return
    errors = ulp_errors(got, want, dtype)
    worst = numpy.unravel_index(int(errors.argmax()), errors.shape)
    assert errors[worst] <= GATES[dtype], (
        f"{name}{list(map(int, worst))} is {got[worst]}, exact is {want.value[worst]}: "
        f"{errors[worst]:.3g} ulp of {dtype}, at most {GATES[dtype]}"
    )
