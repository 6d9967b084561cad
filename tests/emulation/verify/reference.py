# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention in float64, and how far a kernel that rounds as it must may be from it.

Beside every value stands its unit: the size of the error that rounding alone makes there, were
every rounding an independent error of u (half a unit in the last place of the storage format, or
of float32). A kernel rounds

- probabilities, and in the backward pass dS, to storage before the second product,
- every output once, to its own format,
- scores to float32: an error of E in a score is one of E * p in the probability p.

Errors in these units are small numbers for a right kernel, whatever the problem: root mean square
about 0.5, one element in a million above 5. A missing or doubled term is far outside.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
from attention import from_storage, to_storage

from tests.emulation.verify.cases import MASK_NONE, MASK_TOP_LEFT, Case

Array = np.ndarray

UNIT = {"fp16": 2.0**-11, "bf16": 2.0**-8, "fp32": 2.0**-24}
# Below these a format has no more relative precision.
_SMALLEST = {"fp16": 2.0**-14, "bf16": 2.0**-126, "fp32": 2.0**-126}


@dataclasses.dataclass
class Expected:
    value: Array
    unit: Array


@dataclasses.dataclass
class Inputs:
    """Storage bit patterns (uint16) [tokens][heads][head_size], sequences one after the other."""

    q: Array
    k: Array
    v: Array
    dout: Array
    scale: np.float32


def draw(case: Case, dtype: str, head_size: int, seed: int, backward: bool) -> Inputs:
    """Inputs of a case: normal numbers times its amplitude, and keys whose scores vanish."""
    rng = np.random.default_rng(seed)

    def normal(tokens: int, heads: int, amplitude: float) -> Array:
        return amplitude * rng.standard_normal((tokens, heads, head_size))

    q = normal(case.total_q, case.heads_q, case.amplitude)
    k = normal(case.total_k, case.heads_k, case.amplitude)
    v, dout = normal(case.total_k, case.heads_k, 1), normal(case.total_q, case.heads_q, 1)
    if case.vanishing:
        # Infinite keys have no gradient; large ones overflow float32 in bf16, and vanish in fp16.
        infinite = {"fp16": -60000.0, "bf16": -3e38}[dtype] if backward else -np.inf
        q[..., 0] = 8.0
        for start, (_, length) in zip(case.starts(), case.lengths, strict=False):
            k[[start[1] + j for j in case.vanishing if j < length], :, 0] = infinite
    stored = (to_storage(x, dtype) for x in (q, k, v, dout))
    return Inputs(*stored, scale=np.float32(head_size**-0.5))


def visible(case: Case, length_q: int, length_k: int) -> Array:
    """bool [query][key]: which keys the mask lets a query see."""
    seen = np.ones((length_q, length_k), bool)
    if case.mask == MASK_NONE:
        return seen
    diagonal = np.arange(length_q)[:, None]
    if case.mask != MASK_TOP_LEFT:
        diagonal = diagonal + length_k - length_q
    columns, (left, right) = np.arange(length_k)[None], case.window
    if left >= 0:
        seen &= columns >= diagonal - left
    if right >= 0:
        seen &= columns <= diagonal + right
    return seen


def _norm(*terms: Array) -> Array:
    """Independent errors together."""
    return np.sqrt(sum(t * t for t in terms))


def _product_unit(equation: str, errors: Array, factor: Array) -> Array:
    """The error of a product whose first factor has these errors."""
    return np.sqrt(np.einsum(equation, errors * errors, factor * factor))


def reference(case: Case, dtype: str, inputs: Inputs) -> dict[str, Expected]:
    """Expected o, lse, delta, dq, dk, dv (per query head), with o as stored for delta.

    o and dq are [total_q][heads_q][d], dk and dv [total_k][heads_q][d], and lse and delta
    [heads_q][total_q].
    """
    parts = []
    starts = case.starts()
    for first, last in itertools.pairwise(starts):
        rows, columns = slice(first[0], last[0]), slice(first[1], last[1])
        parts.append(_sequence(case, dtype, inputs, rows, columns))
    out = {}
    for name in parts[0]:
        axis = 1 if name in ("lse", "delta") else 0
        out[name] = Expected(
            np.concatenate([p[name].value for p in parts], axis),
            np.concatenate([p[name].unit for p in parts], axis),
        )
    return out


def _sequence(
    case: Case, dtype: str, inputs: Inputs, rows: slice, columns: slice
) -> dict[str, Expected]:
    u, eps, tiny = UNIT[dtype], UNIT["fp32"], _SMALLEST[dtype]
    group = case.heads_q // case.heads_k
    q, dout = (from_storage(x[rows], dtype) for x in (inputs.q, inputs.dout))
    k, v = (np.repeat(from_storage(x[columns], dtype), group, axis=1) for x in (inputs.k, inputs.v))
    scale = float(inputs.scale)

    def stored(value: Array, *errors: Array) -> Expected:
        return Expected(value, _norm(u * np.abs(value), *errors) + u * tiny)

    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.einsum("ihd,jhd->hij", q, k)
        scores[np.abs(scores) > np.finfo(np.float32).max] *= np.inf  # scores are float32
        scores *= scale
        seen = visible(case, *scores.shape[1:])
        scores = np.where(seen, scores, -np.inf)
        top = np.max(scores, axis=2, keepdims=True, initial=-np.inf)
        top = np.where(np.isfinite(top), top, 0.0)
        p = np.exp(scores - top)
        total = p.sum(axis=2, keepdims=True)
        lse = (top + np.log(total))[..., 0]
        p /= np.where(total == 0, 1.0, total)
        sums = scale * np.sqrt(np.einsum("ihd,jhd->hij", q * q, k * k))
        spread = np.where(
            p > 0, eps * (2 * np.abs(scores) + sums + 2 * np.abs(lse)[..., None]), 0.0
        )
    dp_spread = p * spread  # the error of p
    row_spread = np.sqrt((dp_spread**2).sum(axis=2))
    forward_spread = _norm(dp_spread, p * row_spread[..., None])

    o = np.einsum("hij,jhd->ihd", p, v)
    finite_lse = np.where(np.isfinite(lse), lse, 0.0)
    largest = np.max(np.where(p > 0, spread, 0.0), axis=2, initial=0.0)
    out = {
        "o": stored(o, _product_unit("hij,jhd->ihd", _norm(u * p, forward_spread), v)),
        "lse": Expected(lse, 2 * eps * (1 + np.abs(finite_lse)) + largest),
    }
    kept = from_storage(to_storage(o, dtype), dtype)
    delta = np.einsum("ihd,ihd->hi", dout, kept)
    out["delta"] = Expected(
        delta, eps * (np.einsum("ihd,ihd->hi", np.abs(dout), np.abs(kept)) + tiny)
    )

    dp = np.einsum("ihd,jhd->hij", dout, v)
    lift = dp - delta[..., None]
    ds = p * lift
    dp_sums = np.sqrt(np.einsum("ihd,jhd->hij", dout * dout, v * v))
    ds_spread = _norm(u * ds, dp_spread * lift, p * eps * (dp_sums + 2 * np.abs(delta)[..., None]))
    k = np.where(np.isfinite(k), k, 0.0)  # such keys have p == 0 and no gradient is asked for them
    out["dv"] = stored(np.einsum("hij,ihd->jhd", p, dout),
                       _product_unit("hij,ihd->jhd", _norm(u * p, dp_spread), dout))  # fmt: skip
    out["dk"] = stored(np.einsum("hij,ihd->jhd", ds, q) * scale,
                       scale * _product_unit("hij,ihd->jhd", ds_spread, q))  # fmt: skip
    dq = np.einsum("hij,jhd->ihd", ds, k) * scale
    dq_acc = _norm(scale * _product_unit("hij,jhd->ihd", ds_spread, k), eps * np.abs(dq))
    out["dq_acc"] = Expected(dq, dq_acc + eps * tiny)
    out["dq"] = stored(dq)  # from the float32 sum
    return out
