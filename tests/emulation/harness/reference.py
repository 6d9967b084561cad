# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention in float64, and how far a kernel that rounds as it must may be from it.

Beside every value stands its unit: the size of the error that rounding alone makes there, were
every rounding an independent error of u (half a unit in the last place of the storage format, or
of float32). A kernel rounds

- probabilities, and in the backward pass dS, to storage before the second product,
- every output once, to its own format,
- scores to float32, with all that is added to them: an error of E in a score is one of E * p in
  the probability p,
- denormal results in float32 to zero (-fgpu-flush-denormals-to-zero).

Errors in these units are small numbers for a right kernel and any problem: root mean square
about 0.5, one element in a million above 5. A missing or doubled term is far outside.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from tests.emulation.harness import dropout
from tests.emulation.harness.cases import MASK_NONE, MASK_TOP_LEFT, Case

Array = np.ndarray

UNIT = {"fp16": 2.0**-11, "bf16": 2.0**-8, "fp32": 2.0**-24}
# Below these a format has no more relative precision.
SMALLEST = {"fp16": 2.0**-14, "bf16": 2.0**-126, "fp32": 2.0**-126}

# The error of a float32 number that is flushed: at most the smallest normal one. Beside a
# rounding to bf16 it counts for numbers below 2**-126 / 2**-8 = 3e-36, beside one to fp16 never.
_FLUSHED = 2.0**-126

# Of a kernel's random numbers; both halves of both words are used.
DROP_SEED, DROP_OFFSET = 0x0123456789ABCDEF, (1 << 32) - 100


def to_storage(x: Array, dtype: str) -> Array:
    """The bits (uint16) of the nearest fp16 or bf16 numbers."""
    if dtype == "fp16":
        return x.astype(np.float16).view(np.uint16)
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_storage(x: Array, dtype: str) -> Array:
    """float64 of bits (uint16)."""
    if dtype == "fp16":
        return x.view(np.float16).astype(np.float64)
    return (x.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


@dataclasses.dataclass(frozen=True)
class Error:
    """In units: root mean square, and of the worst element, with its index."""

    rms: float
    largest: float
    where: tuple[int, ...]


@dataclasses.dataclass
class Expected:
    """NaN where a kernel must leave the output as it was."""

    value: Array
    unit: Array

    def error(self, actual: Array) -> Error:
        """Where infinity is expected, nothing else is right; NaN is right only where the output
        had to stay as it was."""
        judged = ~np.isnan(self.value)
        if not judged.any():
            return Error(0.0, 0.0, ())
        finite = np.isfinite(self.value)
        with np.errstate(invalid="ignore"):
            distance = np.abs(actual - np.where(finite, self.value, 0.0)) / self.unit
        units = np.where(finite, distance, np.where(actual == self.value, 0.0, np.inf))
        units = np.where(np.isnan(units), np.inf, units)
        units = np.where(judged, units, 0.0)
        where = np.unravel_index(int(units.argmax()), units.shape)
        largest = float(units[where])
        rms = float(np.sqrt(np.sum(units**2) / judged.sum())) if np.isfinite(largest) else np.inf
        return Error(rms, largest, tuple(int(i) for i in where))


@dataclasses.dataclass
class Inputs:
    """Storage bit patterns (uint16) [tokens][heads][head_size], sequences one after the other.

    `bias` is [heads_q][total_q][longest seqlen_k]; `slopes` are ALiBi's, float32 [batch][heads_q].
    Float32 inputs of the kernels that put parts together: `o_acc` [splits][heads_q][total_q][d]
    with `lse_acc` [splits][heads_q][total_q], and `dq_acc` [tiles of keys][total_q][heads_q][d].
    Of attention with sinks, `sink` float32 [heads_q]; kinds/sinks.py has lse and delta in
    `lse_acc`.
    Of rotary embedding, `rotary_cos` and `rotary_sin` [tokens][pairs], bit patterns.
    """

    q: Array
    k: Array
    v: Array
    dout: Array
    scale: np.float32
    bias: Array | None = None
    slopes: Array | None = None
    o_acc: Array | None = None
    lse_acc: Array | None = None
    sink: Array | None = None
    dq_acc: Array | None = None
    rotary_cos: Array | None = None
    rotary_sin: Array | None = None


def draw(case: Case, dtype: str, head_sizes: tuple[int, int], seed: int, backward: bool) -> Inputs:
    """Inputs of a case: normal numbers times its amplitude, and keys whose scores vanish.

    `head_sizes` are those of q and k, and of v and o.
    """
    rng = np.random.default_rng(seed)
    size_qk, size_v = head_sizes

    def normal(tokens: int, heads: int, size: int, amplitude: float = 1.0) -> Array:
        return amplitude * rng.standard_normal((tokens, heads, size))

    q = normal(case.total_q, case.heads_q, size_qk, case.amplitude)
    k = normal(case.total_k, case.heads_k, size_qk, case.amplitude)
    v, dout = normal(case.total_k, case.heads_k, size_v), normal(case.total_q, case.heads_q, size_v)
    if case.vanishing:
        # Infinite keys have no gradient; large ones overflow float32 in bf16, and vanish in fp16.
        infinite = {"fp16": -60000.0, "bf16": -3e38}[dtype] if backward else -np.inf
        q[..., 0] = 8.0
        for start, (_, length) in zip(case.starts(), case.lengths, strict=False):
            k[[start[1] + j for j in case.vanishing if j < length], :, 0] = infinite
    scale = np.float32(size_qk**-0.5 if case.scale is None else case.scale)
    inputs = Inputs(*(to_storage(x, dtype) for x in (q, k, v, dout)), scale=scale)
    if case.bias == "elementwise":
        columns = max(length for _, length in case.lengths)
        bias = rng.standard_normal((case.heads_q, case.total_q, columns))
        inputs.bias = to_storage(bias, dtype)
    elif case.bias == "alibi":
        slopes = rng.uniform(0.01, 0.3, (len(case.lengths), case.heads_q))
        inputs.slopes = slopes.astype(np.float32)
    return inputs


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


def add_partial_results(case: Case, dtype: str, inputs: Inputs, seed: int) -> dict[str, Expected]:
    """Results over parts of the keys, as inputs; and o and lse of all of them together.

    The second half of the queries has seen no key in the first part, and the last one none at all.
    """
    rng = np.random.default_rng(seed)
    shape = (case.splits, case.heads_q, case.total_q)
    lse = (3 * rng.standard_normal(shape)).astype(np.float32)
    o = rng.standard_normal((*shape, inputs.v.shape[2])).astype(np.float32)
    lse[0, :, case.total_q // 2 :] = -np.inf
    lse[:, :, -1] = -np.inf
    o[np.isneginf(lse)] = 0.0
    inputs.o_acc, inputs.lse_acc = o, lse
    top = np.maximum(lse.max(axis=0).astype(np.float64), -1e30)
    weights = np.exp(lse - top)
    total = weights.sum(axis=0)
    weights /= np.where(total == 0, 1.0, total)
    value = (weights[..., None] * o).sum(axis=0).transpose(1, 0, 2)
    spread = 8 * UNIT["fp32"] * (weights[..., None] * np.abs(o)).sum(axis=0).transpose(1, 0, 2)
    with np.errstate(divide="ignore"):
        lse_value = np.where(total > 0, top + np.log(total), -np.inf)
    unit = UNIT[dtype] * (np.abs(value) + SMALLEST[dtype]) + spread
    return {"o": Expected(value, unit), "lse": Expected(lse_value, _lse_unit(lse_value))}


def _lse_unit(lse: Array) -> Array:
    return 2 * UNIT["fp32"] * (1 + np.abs(np.where(np.isfinite(lse), lse, 0.0)))


def add_partial_dq(
    case: Case, dtype: str, inputs: Inputs, tile: int, deterministic: bool, seed: int
) -> Expected:
    """The parts that dq is the sum of, as an input, and dq.

    Deterministic kernels have a sum per tile of keys; those beyond a sequence's last tile are NaN,
    and of a sequence without keys all.
    """
    rng = np.random.default_rng(seed)
    longest = max(length for _, length in case.lengths)
    tiles = max(1, -(-longest // tile)) if deterministic else 1
    parts = rng.standard_normal((tiles, *inputs.q.shape)).astype(np.float32)
    own = np.ones(parts.shape, bool)
    if deterministic:
        for (first, _), (rows, columns) in zip(case.starts(), case.lengths, strict=False):
            own[-(-columns // tile) :, first : first + rows] = False
    inputs.dq_acc = np.where(own, parts, np.float32(np.nan))
    summed = np.where(own, parts, 0.0).astype(np.float64)
    value = summed.sum(axis=0)
    spread = UNIT["fp32"] * np.abs(summed).sum(axis=0) if deterministic else 0.0
    return Expected(value, UNIT[dtype] * (np.abs(value) + SMALLEST[dtype]) + spread)


def _alibi_distance(case: Case, length_q: int, length_k: int) -> Array:
    """[query][key]: the factors of ALiBi's slopes (ck_tile::make_alibi_from_lr_mask).

    With a causal mask it is the key's position, which differs from the distance by a number per
    query, and so only in lse.
    """
    columns = np.arange(length_k)[None] + np.zeros((length_q, 1))
    if case.mask != MASK_NONE and case.window[0] < 0 and case.window[1] == 0:
        return columns
    diagonal = np.arange(length_q)[:, None]
    if case.mask != MASK_TOP_LEFT:
        diagonal = diagonal + length_k - length_q
    return -np.abs(columns - diagonal)


def _norm(*terms: Array | float) -> Array:
    """Independent errors together."""
    return np.sqrt(sum(t * t for t in terms))


def _product_unit(equation: str, errors: Array, factor: Array) -> Array:
    """The error of a product whose first factor has these errors."""
    return np.sqrt(np.einsum(equation, errors * errors, factor * factor))


def reference(
    case: Case, dtype: str, inputs: Inputs, stored_o: Array | None = None
) -> dict[str, Expected]:
    """Expected o, lse, delta, dq, dk, dv (per query head), dbias.

    The backward pass takes o as it was stored, which `stored_o` says; by default it is the exact
    one, rounded. o and dq are [total_q][heads_q][d], dk and dv [total_k][heads_q][d], lse and delta
    [heads_q][total_q], and dbias is [heads_q][total_q][longest seqlen_k].
    """
    parts = [_sequence(case, dtype, inputs, stored_o, i) for i in range(len(case.lengths))]
    out = {}
    for name in parts[0]:
        axis = 1 if name in ("lse", "delta", "dbias") else 0
        out[name] = Expected(
            np.concatenate([p[name].value for p in parts], axis),
            np.concatenate([p[name].unit for p in parts], axis),
        )
    return out


def gradients(case: Case, dtype: str, expected: dict[str, Expected]) -> dict[str, Expected]:
    """dq, dk and dv of a whole backward pass: dq is rounded from dq_acc, dk and dv are sums over
    the query heads that share a head of k, of values in storage."""
    u, dq = UNIT[dtype], expected["dq_acc"]
    out = {"dq": Expected(dq.value, _norm(dq.unit, expected["dq"].unit))}
    for name in ("dk", "dv"):
        value, unit = (
            x.reshape(case.total_k, case.heads_k, -1, x.shape[2])
            for x in (expected[name].value, expected[name].unit)
        )
        total = value.sum(axis=2)
        error = np.sqrt((unit * unit).sum(axis=2))
        out[name] = Expected(total, _norm(error, u * np.abs(total)))
    return out


def _additions(
    case: Case, dtype: str, inputs: Inputs, index: int, rows: slice, shape: tuple[int, ...]
) -> Array:
    """The bias that is added to the scores [head][query][key] of a sequence."""
    if inputs.bias is not None:
        return from_storage(inputs.bias[:, rows, : shape[2]], dtype)
    if inputs.slopes is not None:
        slopes = inputs.slopes[index].astype(np.float64)[:, None, None]
        return slopes * _alibi_distance(case, *shape[1:])
    return np.zeros(shape)


def _stays(case: Case, index: int, shape: tuple[int, ...]) -> Array:
    """bool [head][query][key] of a sequence: False where a probability is dropped."""
    heads, rows, columns = shape
    numbers = [
        dropout.random_bytes(rows, columns, index, head, heads, DROP_SEED, DROP_OFFSET)
        for head in range(heads)
    ]
    return dropout.kept(case.p_drop, np.stack(numbers))


def _kept(case: Case, index: int, shape: tuple[int, ...]) -> Array:
    """float64 [head][query][key]: 0 where a probability is dropped, else its factor."""
    if not case.p_drop:
        return np.ones(shape)
    return _stays(case, index, shape) / (1 - case.p_drop)


def kept_of(case: Case) -> Expected:
    """Which probabilities stay: 1, else 0, [heads_q][total_q][longest seqlen_k]."""
    value = np.zeros((case.heads_q, case.total_q, max(columns for _, columns in case.lengths)))
    for index, ((first, _), (rows, columns)) in enumerate(
        zip(case.starts(), case.lengths, strict=False)
    ):
        stays = _stays(case, index, (case.heads_q, rows, columns))
        value[:, first : first + rows, :columns] = stays
    return Expected(value, np.ones(value.shape))


def _sequence(
    case: Case, dtype: str, inputs: Inputs, stored_o: Array | None, index: int
) -> dict[str, Expected]:
    first, last = case.starts()[index : index + 2]
    rows, columns = slice(first[0], last[0]), slice(first[1], last[1])
    u, eps, tiny = UNIT[dtype], UNIT["fp32"], SMALLEST[dtype]
    group = case.heads_q // case.heads_k
    q, dout = (from_storage(x[rows], dtype) for x in (inputs.q, inputs.dout))
    k, v = (np.repeat(from_storage(x[columns], dtype), group, axis=1) for x in (inputs.k, inputs.v))
    scale = float(inputs.scale)

    def stored(value: Array, *errors: Array) -> Expected:
        return Expected(value, _norm(u * np.abs(value), _FLUSHED, *errors) + u * tiny)

    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.einsum("ihd,jhd->hij", q, k)
        scores[np.abs(scores) > np.finfo(np.float32).max] *= np.inf  # scores are float32
        scores *= scale
        sums = scale * np.sqrt(np.einsum("ihd,jhd->hij", q * q, k * k))
        if case.soft_cap:
            scores = np.tanh(scores / case.soft_cap)
            slope = 1 - scores * scores  # the cap makes the error smaller
            sums = np.where(slope == 0, 0.0, sums * slope)
            scores *= case.soft_cap
        added = _additions(case, dtype, inputs, index, rows, scores.shape)
        scores = scores + added
        seen = visible(case, *scores.shape[1:])
        scores = np.where(seen, scores, -np.inf)
        top = np.max(scores, axis=2, keepdims=True, initial=-np.inf)
        if inputs.sink is not None:
            sink = inputs.sink.astype(np.float64)[:, None, None]
            top = np.maximum(top, sink)
        top = np.where(np.isfinite(top), top, 0.0)
        p = np.exp(scores - top)
        total = p.sum(axis=2, keepdims=True)
        if inputs.sink is not None:
            total += np.exp(sink - top)
        lse = (top + np.log(total))[..., 0]
        p /= np.where(total == 0, 1.0, total)
        spread = np.where(
            p > 0,
            eps * (2 * np.abs(scores) + sums + 2 * np.abs(lse)[..., None] + 2 * np.abs(added)
                   + 4 * case.soft_cap),
            0.0,
        )  # fmt: skip
    dp_spread = p * spread  # the error of p
    row_spread = np.sqrt((dp_spread**2).sum(axis=2))
    forward_spread = _norm(dp_spread, p * row_spread[..., None])

    p_flushed = _FLUSHED * (p > 0)
    p_rounding = _norm(u * np.maximum(p, tiny * (p > 0)), p_flushed)
    kept = _kept(case, index, p.shape)
    o = np.einsum("hij,jhd->ihd", p * kept, v)
    largest = np.max(np.where(p > 0, spread, 0.0), axis=2, initial=0.0)
    # With a sink o is rounded once more, as is lse.
    again = np.zeros_like(o) if inputs.sink is None else u * np.abs(o)
    products = _product_unit("hij,jhd->ihd", kept * _norm(p_rounding, forward_spread), v)
    out = {
        "o": stored(o, products, again),
        "lse": Expected(lse, _lse_unit(lse) + largest),
    }
    # With dropout upstream's delta lacks a factor, which its dq_dk_dv kernels supply.
    delta_scale = 1 - case.p_drop
    rounded = from_storage(to_storage(o, dtype) if stored_o is None else stored_o[rows], dtype)
    delta = np.einsum("ihd,ihd->hi", dout, rounded)
    out["delta"] = Expected(
        delta * delta_scale,
        eps * delta_scale * (np.einsum("ihd,ihd->hi", np.abs(dout), np.abs(rounded)) + tiny)
        + _FLUSHED,
    )

    dp = np.einsum("ihd,jhd->hij", dout, v)
    lift = kept * dp - delta[..., None]
    ds = p * lift
    dp_sums = kept * np.sqrt(np.einsum("ihd,jhd->hij", dout * dout, v * v))
    ds_spread = _norm(
        u * np.maximum(np.abs(ds), tiny * (p > 0)),
        dp_spread * lift,
        p_flushed * lift,
        p_flushed,
        p * eps * (dp_sums + 2 * np.abs(delta)[..., None]),
    )
    dbias = stored(ds, ds_spread)
    longest = max(length for _, length in case.lengths)
    out["dbias"] = Expected(
        *(
            np.pad(x, ((0, 0), (0, 0), (0, longest - ds.shape[2])), constant_values=fill)
            for x, fill in ((dbias.value, 0.0), (dbias.unit, u * tiny))
        )
    )
    k = np.where(np.isfinite(k), k, 0.0)  # such keys have p == 0 and no gradient is asked for them
    out["dv"] = stored(
        np.einsum("hij,ihd->jhd", p * kept, dout),
        _product_unit("hij,ihd->jhd", kept * _norm(p_rounding, dp_spread), dout),
    )
    out["dk"] = stored(np.einsum("hij,ihd->jhd", ds, q) * scale,
                       scale * _product_unit("hij,ihd->jhd", ds_spread, q))  # fmt: skip
    dq = np.einsum("hij,jhd->ihd", ds, k) * scale
    dq_acc = _norm(scale * _product_unit("hij,jhd->ihd", ds_spread, k), eps * np.abs(dq))
    out["dq_acc"] = Expected(dq, _norm(dq_acc, _FLUSHED) + eps * tiny)
    out["dq"] = stored(dq)  # from the float32 sum
    if len(q) <= case.skipped_seqlen_q:
        for name in ("o", "lse"):
            out[name].value[...] = np.nan
    return out
