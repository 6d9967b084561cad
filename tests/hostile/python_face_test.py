# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Any call of the package is right by the definition, or refused by an argument's name.

Either way, nothing is written but results.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy
import pytest
from hypothesis import strategies as st

from tests.hostile.calls import arguments, attempt, call, function_of
from tests.hostile.explore import Counts, explore, parts
from tests.hostile.memory import LAYOUTS, Array, Guarded
from tests.hostile.problems import Arrays, Problem, problems, require_backward, require_forward


def _right_calls(problem: Problem, counts: Counts) -> None:
    arrays = Arrays(problem)
    forward, backward = function_of(problem, "fwd"), function_of(problem, "bwd")
    given = arguments(problem, arrays, forward)
    out, lse = call(counts, forward, given)
    require_forward(problem, arrays, out, lse)
    arrays.require_untouched()

    own = {name: arrays[name] for name in ("out", "lse")}
    again, again_lse = call(counts, forward, given | own)
    assert again is own["out"]
    assert again_lse is own["lse"]
    _require_same((again, again_lse), (out, lse))
    arrays.require_untouched(but=tuple(own))
    for name in own:
        arrays.of[name].remember()

    flash = function_of(problem, "func")
    options = arguments(problem, arrays, flash) | {"return_attn_probs": True}
    _require_same(call(counts, flash, options)[:2], (out, lse))

    given = arguments(problem, arrays, backward)
    gradients = call(counts, backward, given)
    require_backward(problem, arrays, out, lse, gradients)
    arrays.require_untouched()
    own = {name: arrays[name] for name in ("dq", "dk", "dv")}
    again = call(counts, backward, given | own)
    assert all(got is array for got, array in zip(again, own.values(), strict=True))
    _require_same(again, gradients)
    arrays.require_untouched(but=tuple(own))
    if not problem.varlen:
        _right_calls_of_equal_lengths(problem, arrays, (out, lse, *gradients), counts)


def _right_calls_of_equal_lengths(
    problem: Problem, arrays: Arrays, results: tuple[Array, ...], counts: Counts
) -> None:
    """Varlen mode gives the results of batch mode to the bit."""

    def flat(array: Array) -> Array:
        return array.reshape(-1, *array.shape[2:])

    def flat_lse(array: Array) -> Array:
        return array.transpose(1, 0, 2).reshape(problem.heads_q, -1)

    varlen = dataclasses.replace(problem, varlen=True, shared=False)
    same = Arrays(varlen)
    for name in ("q", "k", "v", "dout", "out"):
        same.of[name].fill(flat(arrays[name]))
    same.of["lse"].fill(flat_lse(arrays["lse"]))
    out, lse, *gradients = results
    forward = arguments(varlen, same, "mha_varlen_fwd")
    _require_same(call(counts, "mha_varlen_fwd", forward), (flat(out), flat_lse(lse)))
    backward = arguments(varlen, same, "mha_varlen_bwd")
    _require_same(call(counts, "mha_varlen_bwd", backward), tuple(map(flat, gradients)))


def _require_same(got: tuple[Array, ...], want: tuple[Array, ...]) -> None:
    for g, w in zip(got, want, strict=True):
        numpy.testing.assert_array_equal(g, w)


@parts()
def test_right_calls_equal_the_definition(part: int, capsys: pytest.CaptureFixture[str]) -> None:
    explore(_right_calls, problems(), part, capsys, share=0.4)


# Values that are passed in place of one argument. Each is made anew, of the right argument.
_WRONG_ARRAYS: dict[str, Any] = {
    "another dtype": lambda x: x.astype(numpy.float64),
    "an integer dtype": lambda x: x.astype(numpy.int8),
    "objects": lambda x: x.astype(object),
    "booleans": lambda x: x.astype(bool),
    "the other byte order": lambda x: numpy.zeros(x.shape, ">f2"),
    "records": lambda x: numpy.zeros(x.shape, [("a", "f2"), ("b", "i4")]),
    "text": lambda x: numpy.zeros(x.shape, "U3"),
    "a dimension more": lambda x: x[None],
    "a dimension less": lambda x: x.reshape(x.shape[1:]) if x.shape[0] == 1 else x.reshape(-1),
    "no dimension": lambda x: numpy.array(1, x.dtype),
    "longer": lambda x: numpy.concatenate([x, x[:1]]) if len(x) else numpy.ones((1, *x.shape[1:])),
    "wider": lambda x: numpy.concatenate([x, x[..., :1]], axis=-1),
    "not contiguous": lambda x: numpy.repeat(x, 2, axis=-1)[..., ::2],
    "backwards": lambda x: numpy.ascontiguousarray(x[..., ::-1])[..., ::-1],
    "masked": numpy.ma.MaskedArray,
    "a list": lambda x: x.tolist(),
    "the class": type,
    "nothing": lambda x: None,
    "bytes": lambda x: x.tobytes(),
    "a memory view": lambda x: memoryview(x.tobytes()),
    "a matrix": lambda x: numpy.asmatrix(numpy.zeros((2, 2), x.dtype)),
    "a scalar": lambda x: numpy.float32(1),
    "many batches of nothing": lambda x: numpy.empty((2**31 - 1, 0, 1, 8), x.dtype),
    "many heads of nothing": lambda x: numpy.empty((1, 0, 2**31 - 1, 8), x.dtype),
    "more than 32 bits": lambda x: numpy.broadcast_to(numpy.zeros(8, x.dtype), (2**31, 1, 1, 8)),
    "a huge head": lambda x: numpy.broadcast_to(numpy.zeros(1, x.dtype), (1, 1, 1, 2**40)),
}
_ODD_VALUES = (
    # no numbers
    *(None, "abc", "", "\udc80", b"\xff", object(), int, print, Ellipsis),
    *((), [], [1], {}, {1, 2}, range(2), ("a", "b"), (None, None), (0.5, 1), (1, 2, 3)),
    # numbers of all kinds, also out of every range
    *(True, False, 0, 1, 2, -1, -2, 2**31, 2**63, 2**64, 10**400, -(10**400)),
    *(0.0, -0.0, 1.5, 1e-45, 1e39, float("nan"), float("inf"), float("-inf"), 1j),
    *(numpy.float32(0.5), numpy.float64("nan"), numpy.int64(3), numpy.bool_(True)),
    # pairs and arrays
    *((1, 2), (-1, -1), [3, 3], (2**31, 2**31)),
    *(numpy.zeros(2), numpy.zeros((2, 2), numpy.int32), numpy.array(0.5)),
)
_SCORES = ("dropout_p", "softcap", "alibi_slopes", "bias", "rng_state", "sink")
_OPTIONS = {
    "fwd": ("softmax_scale", "causal", "window_size", "stream", *_SCORES),
    "bwd": (
        *("softmax_scale", "causal", "window_size", "stream", "deterministic", "workspace"),
        *(*_SCORES, "bias_grad", "dbias", "dsink"),
    ),
    "func": (
        "rng_state",
        "sink",
        "softmax_scale",
        "causal",
        "window_size",
        "dropout_p",
        "softcap",
        "alibi_slopes",
        "deterministic",
        "return_attn_probs",
    ),
}
_OUTPUTS = {"fwd": ("out", "lse"), "bwd": ("dq", "dk", "dv"), "func": ()}
_LENGTHS = ("max_seqlen_q", "max_seqlen_k")


@dataclasses.dataclass(frozen=True)
class Odd:
    """Calls of which one argument is odd.

    first, count: of the pairs of an argument and something to pass in its place.
    """

    problem: Problem
    kind: str
    first: int
    count: int


def odd_calls() -> st.SearchStrategy[Odd]:
    kinds = st.sampled_from(tuple(_OPTIONS))
    return st.builds(Odd, problems(), kinds, st.integers(0, 1 << 16), st.integers(1, 16))


def _odd_calls(odd: Odd, counts: Counts) -> None:
    problem = odd.problem
    arrays = Arrays(problem)
    function = function_of(problem, odd.kind)
    outputs = {name: arrays[name] for name in _OUTPUTS[odd.kind]}
    given = arguments(problem, arrays, function)
    names = [*given, *outputs, *_OPTIONS[odd.kind]]
    for number in range(odd.first, odd.first + odd.count):
        name, how = names[number % len(names)], number // len(names)
        right = given.get(name, outputs.get(name))
        if isinstance(right, numpy.ndarray):
            wrong = list(_WRONG_ARRAYS.values())
            value = wrong[how % len(wrong)](right)
        else:
            value = _ODD_VALUES[how % len(_ODD_VALUES)]
        attempt(counts, function, {**given, **(outputs if number % 2 else {}), name: value})
        arrays.require_untouched(but=tuple(outputs))


@parts()
def test_an_odd_argument_is_taken_or_named(part: int, capsys: pytest.CaptureFixture[str]) -> None:
    explore(_odd_calls, odd_calls(), part, capsys, share=0.4)


@dataclasses.dataclass(frozen=True)
class Aliased:
    """Calls whose output and another argument are views of the same memory.

    offsets: how many bytes the one begins behind the other.
    """

    problem: Problem
    output: int
    other: int
    layouts: tuple[int, int]
    offsets: tuple[int, ...]


def aliased_calls() -> st.SearchStrategy[Aliased]:
    number, layout = st.integers(0, 7), st.integers(0, LAYOUTS - 1)
    offset = st.one_of(st.integers(0, 15), st.integers(0, 400))
    offsets = st.lists(offset, min_size=1, max_size=8).map(tuple)
    return st.builds(Aliased, problems(), number, number, st.tuples(layout, layout), offsets)


def _occupied(view: Array) -> set[int]:
    """The addresses of its bytes."""
    first = view.__array_interface__["data"][0]
    starts = numpy.zeros(view.shape, numpy.int64)
    for dim, stride in enumerate(view.strides):
        steps = numpy.arange(view.shape[dim]) * stride
        starts += steps.reshape(-1, *[1] * (view.ndim - dim - 1))
    return {first + int(s) + b for s in starts.ravel() for b in range(view.itemsize)}


def _aliased_calls(aliased: Aliased, counts: Counts) -> None:
    problem = aliased.problem
    arrays = Arrays(problem)
    kind = "fwd" if aliased.output < 2 else "bwd"
    outputs = _OUTPUTS[kind]
    function = function_of(problem, kind)
    given = arguments(problem, arrays, function) | {name: arrays[name] for name in outputs}
    output = outputs[aliased.output % len(outputs)]
    others = [n for n, value in given.items() if isinstance(value, numpy.ndarray) and n != output]
    other = others[aliased.other % len(others)]
    frames = [
        Guarded(
            given[name].shape,
            given[name].dtype.name,
            0 if name == "lse" or name.startswith("cu_") else layout,
        )
        for name, layout in zip((output, other), aliased.layouts, strict=True)
    ]
    element = max(frame.view.itemsize for frame in frames)
    for offset in aliased.offsets:
        offset -= offset % element
        memory = numpy.zeros(offset + sum(frame.room for frame in frames), numpy.uint8)
        views = [f.moved(memory, at) for f, at in zip(frames, (0, offset), strict=True)]
        views[1][...] = given[other]
        kept = views[1].copy()
        if attempt(counts, f"{function}", given | {output: views[0], other: views[1]}):
            both = _occupied(views[0]) & _occupied(views[1])
            assert not both, f"{output} and {other} share {len(both)} bytes, and were taken"
            assert other in outputs or numpy.array_equal(views[1], kept), f"{other} was changed"


@parts()
def test_memory_that_is_shared_with_an_output_is_refused(
    part: int, capsys: pytest.CaptureFixture[str]
) -> None:
    explore(_aliased_calls, aliased_calls(), part, capsys, share=0.2)


@pytest.mark.parametrize("axis", [1, 2], ids=["rows", "heads"])
def test_halves_that_interleave_are_not_shared(axis: int) -> None:
    problem = Problem(
        dtype="float32",
        varlen=False,
        lengths=((4, 4),) * 2,
        heads_k=2,
        group=1,
        head_size=8,
        head_size_v=8,
        causal=True,
        window=(-1, -1),
        scale=None,
        amplitude=1.0,
        seed=3,
        layouts=(0,) * 8,
        shared=False,
    )
    arrays = Arrays(problem)
    packed = numpy.repeat(arrays["q"], 2, axis=axis)
    halves = [packed[:, i::2] if axis == 1 else packed[:, :, i::2] for i in range(2)]
    arrays.of["q"].fill(halves[0])
    interleaved = {"q": halves[0], "out": halves[1]}
    out, lse = call(Counts(), "mha_fwd", arguments(problem, arrays, "mha_fwd") | interleaved)
    require_forward(problem, arrays, out, lse)
