# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Biases, ALiBi, dropout, soft caps and sequences left out, on the CPU: against the float64
reference of the kernels' tests, which was written apart from the library's."""

from __future__ import annotations

import itertools
from typing import Any

import aiter_attn
import ml_dtypes
import numpy
import pytest

from tests.emulation.harness import dropout, reference
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, MASK_NONE, Case
from tests.support.python.calls import (
    Refusal,
    backward,
    check_refused,
    draw,
    explained,
    flash,
    forward,
)
from tests.support.python.calls import mha_varlen as varlen

DTYPES = {"fp16": numpy.float16, "bf16": ml_dtypes.bfloat16}
STATE = (reference.DROP_SEED, reference.DROP_OFFSET)
HEAD_SIZES = (16, 24)
CAUSAL, WINDOW, NO_WINDOW = (-1, 0), (9, 4), (-1, -1)
# Lengths around the tiles of dropout's random numbers; the last one of batch mode, twice.
BATCH = ((70, 45),) * 2
GROUP = ((33, 65), (0, 4), (5, 0), (1, 31), (3, 3))


def case(features: dict[str, Any], group: bool, window: tuple[int, int]) -> Case:
    mask = MASK_NONE if window == NO_WINDOW else MASK_BOTTOM_RIGHT
    lengths = GROUP if group else BATCH
    return Case("", lengths, heads_q=4, heads_k=2, mask=mask, window=window, **features)


class Call:
    """A case's arrays, and the functions of its mode with all that they take."""

    def __init__(self, case: Case, dtype: str, group: bool) -> None:
        self.case, self.dtype, self.group = case, dtype, group
        self.inputs = reference.draw(case, dtype, HEAD_SIZES, seed=3, backward=True)
        inputs = self.inputs
        self.q, self.k, self.v, self.dout = (
            self.array(x) for x in (inputs.q, inputs.k, inputs.v, inputs.dout)
        )
        self.more: list[Any] = []
        if group:
            self.more = [
                numpy.cumsum([0, *lengths], dtype=numpy.int32)
                for lengths in zip(*case.lengths, strict=True)
            ]
            self.more += [max(lengths) for lengths in zip(*case.lengths, strict=True)]
        self.options: dict[str, Any] = {"window_size": case.window}
        if case.mask != MASK_NONE and case.window == CAUSAL:
            self.options = {"causal": True}
        if case.p_drop:
            self.options |= {"dropout_p": case.p_drop, "rng_state": STATE}
        if case.soft_cap:
            self.options["softcap"] = case.soft_cap
        if inputs.slopes is not None:
            self.options["alibi_slopes"] = inputs.slopes
        if inputs.bias is not None:
            self.options["bias"] = self.scores(inputs.bias)

    def array(self, stored: Any) -> Any:
        """Bits [tokens][heads][size] in the layout of the mode."""
        made = numpy.ascontiguousarray(stored).view(DTYPES[self.dtype])
        if self.group:
            return made
        return made.reshape(len(self.case.lengths), -1, *made.shape[1:])

    def scores(self, stored: Any) -> Any:
        """Bits [heads][queries][keys] in the layout of the mode, in memory that is not
        contiguous."""
        wide = numpy.zeros((*stored.shape[:2], stored.shape[2] + 5), numpy.uint16)
        wide[..., :-5] = stored
        made = wide.view(DTYPES[self.dtype])[..., :-5]
        if self.group:
            return made
        split = made.reshape(made.shape[0], len(self.case.lengths), -1, made.shape[2])
        return split.swapaxes(0, 1)

    def forward(self, **options: Any) -> Any:
        function = aiter_attn.mha_varlen_fwd if self.group else aiter_attn.mha_fwd
        return function(self.q, self.k, self.v, *self.more, **self.options | options)

    def backward(self, out: Any, lse: Any, **options: Any) -> Any:
        function = aiter_attn.mha_varlen_bwd if self.group else aiter_attn.mha_bwd
        arrays = (self.dout, self.q, self.k, self.v, out, lse)
        return function(*arrays, *self.more, **self.options | options)

    def tokens(self, array: Any) -> Any:
        """One sequence after the other, in float64."""
        return (array if self.group else array.reshape(-1, *array.shape[2:])).astype(float)

    def rows(self, array: Any) -> Any:
        """[heads][tokens]... of lse and of scores."""
        if self.group:
            return array.astype(float)
        swapped = array.swapaxes(0, 1)
        return swapped.reshape(swapped.shape[0], -1, *swapped.shape[3:]).astype(float)


def check(name: str, expected: reference.Expected, actual: Any) -> None:
    """The reference computes in double: the error is the rounding of its inputs and outputs."""
    error = expected.error(actual)
    assert error.largest <= (6.0 if name == "o" else 12.0), f"{name}: {error}"


FEATURES: dict[str, dict[str, Any]] = {
    "bias": {"bias": "elementwise"},
    "ALiBi": {"bias": "alibi"},
    "dropout": {"p_drop": 0.3},
    "bias, dropout": {"bias": "elementwise", "p_drop": 0.75},
}
each_window = pytest.mark.parametrize("window", [NO_WINDOW, CAUSAL, WINDOW], ids=str)
each_mode = pytest.mark.parametrize("group", [False, True], ids=["batch", "group"])


@each_mode
@each_window
@pytest.mark.parametrize("features", FEATURES)
def test_forward_and_backward(features: str, window: tuple[int, int], group: bool) -> None:
    dtype = "bf16" if group else "fp16"
    chosen = case(FEATURES[features], group, window)
    call = Call(chosen, dtype, group)
    out, lse = call.forward()
    want_dbias = chosen.bias == "elementwise"
    gradients = call.backward(out, lse, bias_grad=want_dbias, deterministic=True)
    stored = numpy.ascontiguousarray(call.tokens(out).astype(DTYPES[dtype])).view(numpy.uint16)
    expected = reference.reference(chosen, dtype, call.inputs, stored)
    expected |= reference.gradients(chosen, dtype, expected)
    check("o", expected["o"], call.tokens(out))
    check("lse", expected["lse"], call.rows(lse))
    for name, gradient in zip(("dq", "dk", "dv"), gradients[:3], strict=True):
        check(name, expected[name], call.tokens(gradient))
    assert len(gradients) == 3 + want_dbias
    if want_dbias:
        check("dbias", expected["dbias"], call.rows(gradients[3]))


def _sum(expected: reference.Expected, sizes: tuple[int, ...], dtype: str) -> reference.Expected:
    """Over the dimensions whose size is 1, rounded once."""
    axes = tuple(i for i, size in enumerate(sizes) if size == 1)
    value = expected.value.sum(axes, keepdims=True)
    unit = numpy.sqrt((expected.unit**2).sum(axes, keepdims=True))
    return reference.Expected(value, unit + reference.UNIT[dtype] * abs(value))


# Of batch, heads and queries in batch mode, of heads and queries in group mode.
REPEATS = [
    (*group, repeats)
    for group in ((False, 3), (True, 2))
    for repeats in itertools.product((False, True), repeat=group[1])
    if any(repeats)
]


@each_window
@pytest.mark.parametrize("features", ["bias", "bias, dropout"])
@pytest.mark.parametrize(("group", "_count", "repeats"), REPEATS, ids=str)
def test_a_bias_that_repeats(
    features: str, window: tuple[int, int], group: bool, _count: int, repeats: tuple[bool, ...]
) -> None:
    chosen = case(FEATURES[features], group, window)
    dtype = "bf16" if repeats[-1] else "fp16"
    call = Call(chosen, dtype, group)
    every = call.options["bias"]
    index = tuple(slice(1) if repeat else slice(None) for repeat in repeats)
    bias = call.options["bias"] = every[index]
    every[...] = bias.copy()
    call.inputs.bias = numpy.ascontiguousarray(call.rows(every).astype(DTYPES[dtype])).view(
        numpy.uint16
    )
    out, lse = call.forward()
    gradients = call.backward(out, lse, bias_grad=True)
    stored = numpy.ascontiguousarray(call.tokens(out).astype(DTYPES[dtype])).view(numpy.uint16)
    expected = reference.reference(chosen, dtype, call.inputs, stored)
    expected |= reference.gradients(chosen, dtype, expected)
    for name, gradient in zip(("dq", "dk", "dv"), gradients[:3], strict=True):
        check(name, expected[name], call.tokens(gradient))
    of_scores = expected["dbias"]
    if not group:
        split = (4, len(BATCH), -1, of_scores.value.shape[2])
        of_scores = reference.Expected(
            *(x.reshape(split).swapaxes(0, 1) for x in (of_scores.value, of_scores.unit))
        )
    assert gradients[3].shape == bias.shape
    check("dbias", _sum(of_scores, bias.shape, dtype), gradients[3].astype(float))
    # A view that repeats has a gradient of every score.
    view = numpy.broadcast_to(bias, every.shape)
    dbias = call.backward(out, lse, bias=view, bias_grad=True)[3]
    assert dbias.shape == every.shape
    check("dbias", of_scores, dbias.astype(float))
    # A given array is written.
    given = numpy.zeros_like(bias)
    assert call.backward(out, lse, bias_grad=True, dbias=given)[3] is given
    numpy.testing.assert_array_equal(given, gradients[3])


def test_a_bias_of_no_query_has_a_gradient() -> None:
    q, out, lse = draw(2, 0, 4, 8), draw(2, 0, 4, 16), draw(2, 4, 0, dtype=numpy.float32)
    given = numpy.full((1, 4, 1, 7), 7, numpy.float16)
    backward(q=q, dout=out, out=out, lse=lse, bias=draw(1, 4, 1, 7), bias_grad=True, dbias=given)
    assert not given.any()


@each_mode
@each_window
@pytest.mark.parametrize("bias", ["none", "alibi"])
def test_a_soft_cap(bias: str, window: tuple[int, int], group: bool) -> None:
    chosen = case({"soft_cap": 1.5, "bias": bias}, group, window)
    call = Call(chosen, "fp16", group)
    out, lse = call.forward()
    expected = reference.reference(chosen, "fp16", call.inputs)
    check("o", expected["o"], call.tokens(out))
    check("lse", expected["lse"], call.rows(lse))


def test_short_sequences_are_left_out() -> None:
    chosen = case({"skipped_seqlen_q": 3}, True, CAUSAL)
    call = Call(chosen, "fp16", True)
    out = numpy.full((chosen.total_q, 4, HEAD_SIZES[1]), 7, numpy.float16)
    lse = numpy.full((4, chosen.total_q), 7, numpy.float32)
    call.forward(min_seqlen_q=3, out=out, lse=lse)
    expected = reference.reference(chosen, "fp16", call.inputs)
    check("o", expected["o"], call.tokens(out))
    skipped = numpy.isnan(expected["lse"].value)
    assert skipped.sum() == 4 * (1 + 3)
    assert (lse[skipped] == 7).all()
    assert (out[skipped[0]] == 7).all()


@pytest.mark.parametrize("shape", [(1, 4, 70, 45), (2, 1, 70, 45), (2, 4, 1, 45), (1, 1, 1, 45)])
def test_one_entry_of_a_bias_serves_all(shape: tuple[int, ...]) -> None:
    call = Call(case({}, False, NO_WINDOW), "fp16", False)
    bias = numpy.random.default_rng(0).standard_normal(shape).astype(numpy.float16)
    whole = numpy.ascontiguousarray(numpy.broadcast_to(bias, (2, 4, 70, 45)))
    for got, want in zip(call.forward(bias=bias), call.forward(bias=whole), strict=True):
        numpy.testing.assert_array_equal(got, want)


def test_slopes_of_all_batch_entries() -> None:
    call = Call(case({}, False, CAUSAL), "fp16", False)
    slopes = numpy.float32([0.5, 0.25, 0.125, 0.0625])
    for got, want in zip(
        call.forward(alibi_slopes=slopes),
        call.forward(alibi_slopes=numpy.stack([slopes] * 2)),
        strict=True,
    ):
        numpy.testing.assert_array_equal(got, want)


@each_mode
def test_the_weights_that_stay(group: bool) -> None:
    chosen = case({"p_drop": 0.3}, group, CAUSAL)
    call = Call(chosen, "fp16", group)
    options = {"causal": True, "dropout_p": 0.3, "rng_state": STATE, "return_attn_probs": True}
    function = aiter_attn.flash_attn_varlen_func if group else aiter_attn.flash_attn_func
    out, lse, kept = function(call.q, call.k, call.v, *call.more, **options)
    for got, want in zip((out, lse), call.forward(), strict=True):
        numpy.testing.assert_array_equal(got, want)
    for dtype in (numpy.uint64, numpy.int64):
        options["rng_state"] = numpy.array(STATE, numpy.uint64).view(dtype)
        again = function(call.q, call.k, call.v, *call.more, **options)
        for got, want in zip((out, lse, kept), again, strict=True):
            numpy.testing.assert_array_equal(got, want)
    assert kept.dtype == numpy.uint8
    longest = max(length for _, length in chosen.lengths)
    want = numpy.zeros((4, chosen.total_q, longest))
    for index, ((start, _), (rows, columns)) in enumerate(
        zip(chosen.starts(), chosen.lengths, strict=False)
    ):
        for head in range(4):
            numbers = dropout.random_bytes(rows, columns, index, head, 4, *STATE)
            want[head, start : start + rows, :columns] = dropout.kept(0.3, numbers)
    numpy.testing.assert_array_equal(call.rows(kept), want)
    assert abs(kept.sum() / (4 * sum(a * b for a, b in chosen.lengths)) - 0.7) < 0.02


def test_other_random_numbers_drop_other_weights() -> None:
    q = draw(2, 5, 4, 8)
    kept = [
        aiter_attn.flash_attn_func(q, q, q, dropout_p=0.5, rng_state=state, return_attn_probs=True)[
            2
        ]
        for state in ((1, 0), (2, 0), (1, 2 * 4 * 64))
    ]
    for i in range(3):
        assert not numpy.array_equal(kept[i], kept[i - 1])


def test_without_dropout_the_state_does_not_matter() -> None:
    call = Call(case({}, False, CAUSAL), "fp16", False)
    for got, want in zip(call.forward(rng_state=(1, 2)), call.forward(), strict=True):
        numpy.testing.assert_array_equal(got, want)


def test_a_plan_asks_for_what_the_call_asks_for() -> None:
    with pytest.raises(aiter_attn.UnsupportedError, match="dropout"):
        explained(dropout_p=0.1)
    with pytest.raises(aiter_attn.UnsupportedError, match="an elementwise bias"):
        explained(bias="elementwise")
    with pytest.raises(aiter_attn.UnsupportedError, match="ALiBi"):
        explained(bias="alibi", backward=True)
    with pytest.raises(aiter_attn.UnsupportedError, match="a soft cap"):
        explained(softcap=3.0)
    with pytest.raises(aiter_attn.UnsupportedError, match="no backward kernel with a cap"):
        explained(softcap=3.0, backward=True)
    with pytest.raises(aiter_attn.UnsupportedError, match="a fixed order"):
        explained(deterministic=True, backward=True)


_STATE_ALLOWED = "allowed: (seed, offset), integers from 0 to 18446744073709551615"
_SLOPES = draw(4, dtype=numpy.float32)
WRONG: dict[str, Refusal] = {
    "no random numbers": (
        flash,
        {"dropout_p": 0.1},
        ValueError,
        f"rng_state: None, but dropout_p is 0.1; {_STATE_ALLOWED}",
    ),
    "a seed alone": (
        flash,
        {"dropout_p": 0.1, "rng_state": 7},
        TypeError,
        f"rng_state: 7; {_STATE_ALLOWED}",
    ),
    "a seed below zero": (
        forward,
        {"dropout_p": 0.1, "rng_state": (-1, 0)},
        ValueError,
        f"rng_state: (-1, 0); {_STATE_ALLOWED}",
    ),
    "an offset of 65 bits": (
        backward,
        {"dropout_p": 0.1, "rng_state": (0, 2**64)},
        ValueError,
        "rng_state: (0, 18446744073709551616); allowed: (seed",
    ),
    "a state of floats": (
        forward,
        {"dropout_p": 0.1, "rng_state": draw(2, dtype=numpy.float32)},
        TypeError,
        "rng_state: dtype float32; allowed: int64 or uint64",
    ),
    "a state of three numbers": (
        backward,
        {"dropout_p": 0.1, "rng_state": numpy.zeros(3, numpy.int64)},
        ValueError,
        "rng_state: shape (3,); allowed: (2,), seed and offset",
    ),
    "a state with holes": (
        flash,
        {"dropout_p": 0.1, "rng_state": numpy.zeros(4, numpy.int64)[::2]},
        ValueError,
        "rng_state: strides (2,)",
    ),
    "slopes of another number of heads": (
        forward,
        {"alibi_slopes": draw(3, dtype=numpy.float32)},
        ValueError,
        "alibi_slopes: shape (3,); allowed here: (4,) [heads] or (2, 4) [batch, heads]",
    ),
    "slopes of halves": (
        forward,
        {"alibi_slopes": draw(4)},
        TypeError,
        "alibi_slopes: dtype float16; allowed: float32",
    ),
    "slopes with holes": (
        forward,
        {"alibi_slopes": draw(8, dtype=numpy.float32)[::2]},
        ValueError,
        "alibi_slopes: strides (2,)",
    ),
    "slopes and a bias": (
        forward,
        {"alibi_slopes": _SLOPES, "bias": draw(2, 4, 5, 7)},
        ValueError,
        "bias, alibi_slopes: both given; allowed: one of them",
    ),
    "a bias of three dimensions": (
        forward,
        {"bias": draw(4, 5, 7)},
        ValueError,
        "bias: shape (4, 5, 7); allowed here: (2, 4, 5, 7) [batch, heads, queries, keys]",
    ),
    "a bias of three batch entries": (
        backward,
        {"bias": draw(3, 4, 5, 7)},
        ValueError,
        "bias: shape (3, 4, 5, 7); allowed here: (2, 4, 5, 7)",
    ),
    "a bias of one key": (
        forward,
        {"bias": draw(2, 4, 5, 1)},
        ValueError,
        "bias: shape (2, 4, 5, 1); allowed here: (2, 4, 5, 7)",
    ),
    "a bias of another dtype": (
        forward,
        {"bias": draw(2, 4, 5, 7, dtype=numpy.float32)},
        TypeError,
        "bias: dtype float32; allowed here: float16, as q has",
    ),
    "a bias with holes": (
        forward,
        {"bias": draw(2, 4, 5, 14)[..., ::2]},
        ValueError,
        "bias: strides (280, 70, 14, 2)",
    ),
    "a gradient of no bias": (
        backward,
        {"bias_grad": True},
        ValueError,
        "bias_grad: True, but bias is None; allowed: False without a bias",
    ),
    "a gradient that is not wanted": (
        backward,
        {"bias": draw(2, 4, 5, 7), "dbias": draw(2, 4, 5, 7)},
        ValueError,
        "dbias: given, but bias_grad is False; allowed: None, or bias_grad=True",
    ),
    "a gradient of another shape": (
        backward,
        {"bias": draw(2, 4, 5, 7), "bias_grad": True, "dbias": draw(1, 4, 5, 7)},
        ValueError,
        "dbias: shape (1, 4, 5, 7); allowed here: (2, 4, 5, 7)",
    ),
    "a gradient of a bias that repeats": (
        backward,
        {"bias": draw(2, 4, 1, 7), "bias_grad": True, "dbias": draw(2, 4, 5, 7)},
        ValueError,
        "dbias: shape (2, 4, 5, 7); allowed here: (2, 4, 1, 7)",
    ),
    "a least length below zero": (
        varlen,
        {"min_seqlen_q": -1},
        ValueError,
        "min_seqlen_q: -1; allowed: 0 to 2147483647",
    ),
    "an unknown bias": (
        explained,
        {"bias": "slopes"},
        ValueError,
        'bias: \'slopes\'; allowed: "elementwise", "alibi", or None',
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name: str) -> None:
    check_refused(WRONG[name])
