# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Sinks of attention on the CPU: against float64, where a sink is a key more, without a value."""

from __future__ import annotations

from typing import Any

import aiter_attn
import numpy
import pytest

from tests.support.python.attention import attention, gradients
from tests.support.python.calls import (
    ROWS_Q,
    Q,
    Refusal,
    backward,
    check_refused,
    flash,
    forward,
    mha_varlen,
)

HEADS, HEADS_K, SIZE, SIZE_V = 4, 2, 16, 24
# Of little weight, of all of it, none, and the usual.
SINK = numpy.array([-3.0, 9.0, -numpy.inf, 0.5], numpy.float32)
# With more queries than keys the first ones see none.
BATCH = ((9, 5),) * 2
GROUP = ((7, 12), (3, 0), (0, 4), (6, 2), (1, 1))
MASKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no mask": ({}, {}),
    "causal": ({"causal": True}, {"causal": True}),
    "a window": ({"window_size": (2, 1)}, {"window": (2, 1)}),
}
each_mask = pytest.mark.parametrize("mask", MASKS)
each_mode = pytest.mark.parametrize("group", [False, True], ids=["batch", "group"])


def normal(seed: int, *shape: int, dtype: Any = numpy.float32) -> Any:
    return numpy.random.default_rng(seed).standard_normal(shape).astype(dtype)


class Case:
    """Arrays of all sequences one after the other, and the library's forms of them."""

    def __init__(self, group: bool, dtype: Any = numpy.float32) -> None:
        self.group, self.lengths = group, GROUP if group else BATCH
        self.starts_q, self.starts_k = (
            numpy.cumsum([0, *lengths], dtype=numpy.int32)
            for lengths in zip(*self.lengths, strict=True)
        )
        rows_q, rows_k = self.starts_q[-1], self.starts_k[-1]
        self.q = normal(0, rows_q, HEADS, SIZE, dtype=dtype)
        self.k = normal(1, rows_k, HEADS_K, SIZE, dtype=dtype)
        self.v = normal(2, rows_k, HEADS_K, SIZE_V, dtype=dtype)
        self.dout = normal(3, rows_q, HEADS, SIZE_V, dtype=dtype)
        longest = (max(lengths) for lengths in zip(*self.lengths, strict=True))
        self.more = [self.starts_q, self.starts_k, *longest] if group else []

    def given(self, array: Any) -> Any:
        return array if self.group else array.reshape(len(self.lengths), -1, *array.shape[1:])

    def forward(self, **options: Any) -> Any:
        function = aiter_attn.mha_varlen_fwd if self.group else aiter_attn.mha_fwd
        arrays = (self.given(x) for x in (self.q, self.k, self.v))
        return function(*arrays, *self.more, **options)

    def backward(self, out: Any, lse: Any, **options: Any) -> Any:
        function = aiter_attn.mha_varlen_bwd if self.group else aiter_attn.mha_bwd
        arrays = (self.given(x) for x in (self.dout, self.q, self.k, self.v))
        return function(*arrays, out, lse, *self.more, **options)

    def parts(self) -> Any:
        """(rows of queries, rows of keys) of each sequence."""
        for b in range(len(self.lengths)):
            yield (
                slice(self.starts_q[b], self.starts_q[b + 1]),
                slice(self.starts_k[b], self.starts_k[b + 1]),
            )

    def lse(self, array: Any) -> Any:
        """[heads, all rows]"""
        return array if self.group else array.swapaxes(0, 1).reshape(HEADS, -1)

    def exact(self, sink: Any, mask: dict[str, Any], kept: Any = None) -> dict[str, Any]:
        """In float64; kept: factors of weights, one sequence after the other."""
        want: dict[str, Any] = {x: [] for x in ("out", "lse", "dq", "dk", "dv", "dsink")}
        for b, (of_q, of_k) in enumerate(self.parts()):
            arrays = self.q[of_q], self.k[of_k], self.v[of_k]
            more = mask | {"sink": sink, "kept": 1.0 if kept is None else kept[b]}
            results = *attention(*arrays, **more), *gradients(self.dout[of_q], *arrays, **more)
            for name, result in zip(want, results, strict=True):
                want[name].append(result)
        lse = numpy.concatenate(want.pop("lse"), axis=1)
        dsink = numpy.sum(want.pop("dsink"), axis=0)
        return {x: numpy.concatenate(y) for x, y in want.items()} | {"lse": lse, "dsink": dsink}


def check(case: Case, want: dict[str, Any], results: Any, limit: float = 2e-6) -> None:
    out, lse, dq, dk, dv, dsink = results
    assert dsink.dtype == lse.dtype == numpy.float32
    assert dsink.shape == (HEADS,)
    got = {"lse": case.lse(lse), "dsink": dsink}
    for name, array in (("out", out), ("dq", dq), ("dk", dk), ("dv", dv)):
        got[name] = array if case.group else array.reshape(-1, *array.shape[2:])
    for name, array in got.items():
        numpy.testing.assert_allclose(
            array.astype(float), want[name], limit, limit * 10, err_msg=name
        )


@each_mode
@each_mask
def test_forward_and_backward(mask: str, group: bool) -> None:
    case, (options, of_exact) = Case(group), MASKS[mask]
    out, lse = case.forward(sink=SINK, **options)
    results = out, lse, *case.backward(out, lse, sink=SINK, **options)
    want = case.exact(SINK, of_exact)
    check(case, want, results)
    # A row without a key.
    no_key = numpy.isneginf(case.lse(case.forward(**options)[1])[0])
    assert no_key.any() == (group or mask != "no mask")
    of_no_key = case.lse(lse)[:, no_key]
    numpy.testing.assert_array_equal(of_no_key, numpy.broadcast_to(SINK[:, None], of_no_key.shape))
    assert not case.backward(out, lse, sink=SINK, **options)[3][2], "-inf is no sink"


@each_mode
def test_dropout_does_not_drop_it(group: bool) -> None:
    case = Case(group)
    dropout = {"dropout_p": 0.4, "rng_state": (5, 6)}
    function = aiter_attn.flash_attn_varlen_func if group else aiter_attn.flash_attn_func
    arrays = (case.given(x) for x in (case.q, case.k, case.v))
    _, _, kept = function(*arrays, *case.more, **dropout, return_attn_probs=True)
    factors = []
    for b, (of_q, of_k) in enumerate(case.parts()):
        rows = kept[:, of_q] if group else kept[b]
        factors.append(rows[..., : of_k.stop - of_k.start] / 0.6)
    out, lse = case.forward(sink=SINK, **dropout)
    gradients = case.backward(out, lse, sink=SINK, **dropout)
    check(case, case.exact(SINK, {}, factors), (out, lse, *gradients), 1e-5)


def test_storage_of_two_bytes() -> None:
    case = Case(False, numpy.float16)
    out, lse = case.forward(sink=SINK)
    assert out.dtype == numpy.float16
    want = case.exact(SINK, {})
    check(case, want, (out, lse, *case.backward(out, lse, sink=SINK)), 3e-3)


def test_its_gradient_is_that_of_a_difference() -> None:
    """Not by the formula that the library has."""
    case, step = Case(True), 1e-2
    sink = numpy.array([0.3, -0.5, 1.0, 2.0], numpy.float32)

    def value(of: Any) -> float:
        out, _ = case.forward(sink=of)
        return float((out.astype(float) * case.dout).sum())

    out, lse = case.forward(sink=sink)
    dsink = case.backward(out, lse, sink=sink)[3]
    for head in range(HEADS):
        moved = numpy.eye(HEADS, dtype=numpy.float32)[head] * numpy.float32(step)
        slope = (value(sink + moved) - value(sink - moved)) / (2 * step)
        assert abs(slope - dsink[head]) < 1e-3


def test_a_sink_of_no_weight_changes_nothing() -> None:
    case = Case(True)
    without, with_none = case.forward(), case.forward(sink=numpy.full(HEADS, -numpy.inf, "f4"))
    for one, other in zip(without, with_none, strict=True):
        numpy.testing.assert_array_equal(one, other)


@each_mode
def test_other_gradients_follow_from_out_and_lse(group: bool) -> None:
    case = Case(group)
    out, lse = case.forward(sink=SINK)
    with_sink = case.backward(out, lse, sink=SINK)
    without = case.backward(out, lse)
    assert (len(with_sink), len(without)) == (4, 3)
    for one, other in zip(with_sink, without, strict=False):
        numpy.testing.assert_array_equal(one, other)


def test_given_memory_is_written() -> None:
    case, dsink = Case(False), numpy.full(HEADS, 7, numpy.float32)
    out, lse = case.forward(sink=SINK)
    got = case.backward(out, lse, sink=SINK, dsink=dsink)[3]
    assert got is dsink
    numpy.testing.assert_array_equal(dsink, case.backward(out, lse, sink=SINK)[3])


def test_left_out_sequences_stay_as_they_are() -> None:
    case = Case(True)
    out = numpy.full((len(case.q), HEADS, SIZE_V), 7, numpy.float32)
    lse = numpy.full((HEADS, len(case.q)), 7, numpy.float32)
    case.forward(sink=SINK, min_seqlen_q=3, out=out, lse=lse)
    want, want_lse = case.forward(sink=SINK)
    for of_q, _ in case.parts():
        if of_q.stop - of_q.start <= 3:
            want[of_q], want_lse[:, of_q] = 7, 7
    numpy.testing.assert_array_equal(out, want)
    numpy.testing.assert_array_equal(lse, want_lse)


def test_without_any_query() -> None:
    q, k = (numpy.zeros((2, n, HEADS, SIZE), numpy.float32) for n in (0, 3))
    out, lse = aiter_attn.mha_fwd(q, k, k, sink=SINK)
    *_, dsink = aiter_attn.mha_bwd(q, q, k, k, out, lse, sink=SINK)
    assert not dsink.any()


def test_packed_arrays() -> None:
    kv = normal(5, 2, 6, 2, HEADS, SIZE)
    q = normal(6, 2, 6, HEADS, SIZE)
    want = aiter_attn.flash_attn_func(q, kv[:, :, 0], kv[:, :, 1], sink=SINK)
    got = aiter_attn.flash_attn_kvpacked_func(q, kv, sink=SINK)
    numpy.testing.assert_array_equal(got, want)
    qkv = numpy.concatenate([q[:, :, None], kv], axis=2)
    numpy.testing.assert_array_equal(aiter_attn.flash_attn_qkvpacked_func(qkv, sink=SINK), want)


@pytest.mark.parametrize("paged", [False, True], ids=["in place", "in pages"])
def test_over_a_cache(paged: bool) -> None:
    lengths, room, page = numpy.array([9, 0, 4], numpy.int32), 12, 4
    q = normal(7, 3, 2, HEADS, SIZE)
    k, v = normal(8, 3, room, HEADS_K, SIZE), normal(9, 3, room, HEADS_K, SIZE_V)
    given, more = [k, v], {}
    if paged:
        given = [x.reshape(-1, page, *x.shape[2:]) for x in (k, v)]
        more["block_table"] = numpy.arange(9, dtype=numpy.int32).reshape(3, 3)
    out, lse = aiter_attn.flash_attn_with_kvcache(
        q, *given, cache_seqlens=lengths, causal=True, sink=SINK, return_softmax_lse=True, **more
    )
    for b, length in enumerate(lengths):
        want = attention(q[b], k[b, :length], v[b, :length], causal=True, sink=SINK)
        numpy.testing.assert_allclose(out[b], want[0], 1e-5, 1e-6)
        numpy.testing.assert_allclose(lse[b], want[1], 1e-5, 1e-6)


def test_a_cache_that_is_appended_to() -> None:
    q, (k, v) = normal(7, 1, 2, HEADS, SIZE), (normal(s, 1, 8, HEADS_K, SIZE) for s in (8, 9))
    new_k, new_v = normal(10, 1, 2, HEADS_K, SIZE), normal(11, 1, 2, HEADS_K, SIZE)
    out = aiter_attn.flash_attn_with_kvcache(q, k, v, new_k, new_v, cache_seqlens=5, sink=SINK)
    assert (k[:, 5:7] == new_k).all()
    want, _ = attention(q[0], k[0, :7], v[0, :7], sink=SINK)
    numpy.testing.assert_allclose(out[0], want, 1e-5, 1e-6)


def test_keys_one_by_one_and_pages_of_packed_queries() -> None:
    q, k = normal(7, 5, HEADS, SIZE), normal(8, 12, HEADS_K, SIZE)
    starts, offsets = (numpy.array(x, numpy.int32) for x in ([0, 2, 5], [0, 3, 10]))
    pages = numpy.arange(12, dtype=numpy.int32)[::-1].copy()
    listed = aiter_attn.mha_batch_prefill(q, k, k, starts, offsets, pages, 3, 7, sink=SINK)
    table = numpy.array([[0, 1], [2, 0]], numpy.int32)
    lengths = numpy.array([0, 4, 7], numpy.int32)
    in_pages = k.reshape(3, 4, HEADS_K, SIZE)
    paged = aiter_attn.flash_attn_varlen_func(
        q, in_pages, in_pages, starts, lengths, 3, 4, block_table=table, sink=SINK
    )
    for b in range(2):
        rows = slice(starts[b], starts[b + 1])
        of_b = k[pages[offsets[b] : offsets[b + 1]]]
        want, _ = attention(q[rows], of_b, of_b, sink=SINK)
        numpy.testing.assert_allclose(listed[rows], want, 1e-5, 1e-6)
        of_b = in_pages[table[b]].reshape(-1, HEADS_K, SIZE)[: lengths[b + 1] - lengths[b]]
        want, _ = attention(q[rows], of_b, of_b, sink=SINK)
        numpy.testing.assert_allclose(paged[rows], want, 1e-5, 1e-6)


def cached(**changes: Any) -> Any:
    cache = numpy.zeros((2, 7, 2, 8), numpy.float16)
    return aiter_attn.flash_attn_with_kvcache(
        **{"q": Q, "k_cache": cache, "v_cache": cache} | changes
    )


WRONG = numpy.zeros(3, numpy.float32)
STRIDED = numpy.zeros(8, numpy.float32)[::2]
REFUSALS: dict[str, Refusal] = {
    "too few": (flash, {"sink": WRONG}, ValueError, "sink: shape (3,); allowed here: (4,) [heads"),
    "of two dimensions": (forward, {"sink": SINK[None]}, ValueError, "sink: shape (1, 4); allowed"),
    "of key heads": (mha_varlen, {"sink": SINK[:2]}, ValueError, "sink: shape (2,); allowed here"),
    "of doubles": (flash, {"sink": SINK.astype(float)}, TypeError, "sink: dtype float64; allowed"),
    "as q": (flash, {"sink": SINK.astype("f2")}, TypeError, "sink: dtype float16; allowed"),
    "with gaps": (forward, {"sink": STRIDED}, ValueError, "sink: strides (2,)"),
    "no array": (flash, {"sink": 1.0}, TypeError, "sink: float"),
    "backward": (backward, {"sink": WRONG}, ValueError, "sink: shape (3,); allowed here: (4,)"),
    "dsink alone": (backward, {"dsink": WRONG}, ValueError, "dsink: given, but sink is None"),
    "dsink of another shape": (
        backward, {"sink": SINK, "dsink": WRONG}, ValueError, "dsink: shape (3,); allowed here"
    ),
    "dsink of another dtype": (
        backward, {"sink": SINK, "dsink": SINK.astype(float)}, TypeError, "dsink: dtype float64"
    ),
    "dsink is sink": (backward, {"sink": SINK, "dsink": SINK}, ValueError, "dsink overlaps sink"),
    "over a cache": (cached, {"sink": WRONG}, ValueError, "sink: shape (3,); allowed here: (4,)"),
    "over a cache, of halves": (
        cached, {"sink": SINK.astype("f2")}, TypeError, "sink: dtype float16; allowed: float32"
    ),
}  # fmt: skip


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_refused(refusal: Refusal) -> None:
    check_refused(refusal)


def test_the_usual_calls_take_one() -> None:
    for call in (flash, forward, cached):
        call(sink=SINK)
    assert mha_varlen(sink=SINK)[0].shape == ROWS_Q.shape
