# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Problems of attention, as hypothesis draws them, with their arrays and their exact results."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy
from hypothesis import strategies as st

from tests.hostile import oracle
from tests.hostile.memory import LAYOUTS, Array, Guarded, many_bits

Lengths = tuple[tuple[int, int], ...]


@dataclasses.dataclass(frozen=True)
class Problem:
    """lengths are (queries, keys) of each sequence; all equal unless varlen."""

    dtype: str
    varlen: bool
    lengths: Lengths
    heads_k: int
    group: int  # query heads per key head
    head_size: int
    head_size_v: int
    causal: bool
    window: tuple[int, int]
    scale: float | None
    amplitude: float
    seed: int
    layouts: tuple[int, ...]  # of q, k, v, dout, out, dq, dk, dv
    shared: bool  # whether the first dimension of k and v has stride 0

    @property
    def heads_q(self) -> int:
        return self.heads_k * self.group

    @property
    def used_scale(self) -> float:
        return 1.0 / math.sqrt(self.head_size) if self.scale is None else self.scale

    @property
    def mask(self) -> oracle.Mask:
        """A bound below 0, or of as many keys as there are or more, is none."""
        left, right = self.window[0], 0 if self.causal else self.window[1]
        keys = self.longest(1) if self.lengths else 0
        return oracle.Mask(*(bound if 0 <= bound < keys else -1 for bound in (left, right)))

    def rows(self, side: int) -> tuple[int, ...]:
        """The leading dimensions of q (side 0) or k and v (side 1)."""
        if self.varlen:
            return (sum(pair[side] for pair in self.lengths),)
        return len(self.lengths), self.lengths[0][side] if self.lengths else 3

    def shape(self, name: str) -> tuple[int, ...]:
        if name == "lse":
            *batch, tokens = self.rows(0)
            return (*batch, self.heads_q, tokens)
        size = self.head_size if name in ("q", "k", "dq", "dk") else self.head_size_v
        if name in ("k", "v", "dk", "dv"):
            return (*self.rows(1), self.heads_k, size)
        return (*self.rows(0), self.heads_q, size)

    def starts(self, side: int) -> Array:
        lengths = [pair[side] for pair in self.lengths]
        return numpy.array([0, *numpy.cumsum(lengths)], numpy.int32)

    def longest(self, side: int) -> int:
        return max((pair[side] for pair in self.lengths), default=0)

    def parts(self) -> Iterator[tuple[Any, Any, tuple[Any, ...], int, int]]:
        """Of each sequence and query head: where its rows are in arrays like q, in those like k,
        and in lse; the query head, and the key head."""
        at_q, at_k = self.starts(0), self.starts(1)
        for i in range(len(self.lengths)):
            if self.varlen:
                queries = (slice(at_q[i], at_q[i + 1]),)
                keys = (slice(at_k[i], at_k[i + 1]),)
            else:
                queries = keys = (i, slice(None))
            for head in range(self.heads_q):
                lse = (*queries[:-1], head, queries[-1])
                yield queries, keys, lse, head, head // self.group


_LENGTHS = st.one_of(st.integers(0, 9), st.sampled_from((1, 17, 33)))
_HEAD_SIZES = st.one_of(st.integers(1, 9), st.sampled_from((1, 16, 33, 64, 128)))
_WINDOWS = st.one_of(st.just(-1), st.integers(-2, 12), st.sampled_from((40, 2**31 - 1, -(2**40))))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    varlen = draw(st.booleans())
    if varlen:
        lengths = tuple(draw(st.lists(st.tuples(_LENGTHS, _LENGTHS), max_size=4)))
    else:
        lengths = ((draw(_LENGTHS), draw(_LENGTHS)),) * draw(st.integers(0, 3))
    bits = draw(many_bits())
    layouts = tuple(bits >> 12 * i & LAYOUTS - 1 for i in range(8))
    return Problem(
        dtype=draw(st.sampled_from(("float32", "float16", "bfloat16"))),
        varlen=varlen,
        lengths=lengths,
        heads_k=draw(st.integers(1, 3)),
        group=draw(st.integers(1, 3)),
        head_size=draw(_HEAD_SIZES),
        head_size_v=draw(_HEAD_SIZES),
        causal=draw(st.booleans()),
        window=(draw(_WINDOWS), draw(_WINDOWS)),
        scale=draw(st.one_of(st.none(), st.floats(2.0**-10, 4.0))),
        amplitude=(1.0, 0.01, 1.0, 30.0)[bits >> 96 & 3],
        seed=bits >> 98 & 0xFFFF,
        layouts=layouts,
        shared=bool(bits >> 114 & 1),
    )


class Arrays:
    """A problem's inputs and outputs, guarded."""

    _NAMES = ("q", "k", "v", "dout", "out", "dq", "dk", "dv")

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.of: dict[str, Guarded] = {}
        for i, (name, layout) in enumerate(zip(self._NAMES, problem.layouts, strict=True)):
            # A shared array is an input, and drawn: only then is a part of it anything's value.
            shared = (0,) if problem.shared and name in ("k", "v") else ()
            array = Guarded(problem.shape(name), problem.dtype, layout, shared)
            if i < 4:
                array.draw(problem.seed + i, problem.amplitude)
            self.of[name] = array
        self.of["lse"] = Guarded(problem.shape("lse"), "float32")
        for side, name in enumerate(("cu_seqlens_q", "cu_seqlens_k")):
            starts = problem.starts(side)
            self.of[name] = Guarded(starts.shape, "int32").fill(starts)

    def __getitem__(self, name: str) -> Array:
        return self.of[name].view

    def require_untouched(self, but: tuple[str, ...] = ()) -> None:
        """Asserts that nothing was written but the elements of these arrays."""
        for name, array in self.of.items():
            if name in but:
                array.require_only_elements_written(name)
            else:
                array.require_untouched(name)


def require_forward(problem: Problem, arrays: Arrays, out: Array, lse: Array) -> None:
    """Asserts that out and lse are those of the definition."""
    _require_like("out", out, problem.shape("out"), problem.dtype)
    _require_like("lse", lse, problem.shape("lse"), "float32")
    q, k, v = (arrays[name] for name in ("q", "k", "v"))
    for queries, keys, at_lse, head, key_head in problem.parts():
        want_out, want_lse = oracle.forward(
            q[queries][:, head],
            k[keys][:, key_head],
            v[keys][:, key_head],
            problem.used_scale,
            problem.mask,
        )
        oracle.require_equal("out", out[queries][:, head], want_out, problem.dtype)
        oracle.require_equal("lse", lse[at_lse], want_lse, "float32")


def require_backward(
    problem: Problem, arrays: Arrays, out: Array, lse: Array, gradients: tuple[Array, Array, Array]
) -> None:
    """Asserts that (dq, dk, dv) are those of the definition, with this out and lse."""
    for name, array in zip(("dq", "dk", "dv"), gradients, strict=True):
        _require_like(name, array, problem.shape(name), problem.dtype)
    dout, q, k, v = (arrays[name] for name in ("dout", "q", "k", "v"))
    dq, dk, dv = gradients
    sums: list[oracle.Exact] = []
    for queries, keys, at_lse, head, key_head in problem.parts():
        want_dq, *want, _ = oracle.backward(
            dout[queries][:, head],
            q[queries][:, head],
            k[keys][:, key_head],
            v[keys][:, key_head],
            out[queries][:, head],
            lse[at_lse],
            problem.used_scale,
            problem.mask,
        )
        oracle.require_equal("dq", dq[queries][:, head], want_dq, problem.dtype)
        if head % problem.group == 0:
            sums = want
        else:
            for total, part in zip(sums, want, strict=True):
                total.value = total.value + part.value
                total.magnitude = total.magnitude + part.magnitude
        if (head + 1) % problem.group == 0:
            oracle.require_equal("dk", dk[keys][:, key_head], sums[0], problem.dtype)
            oracle.require_equal("dv", dv[keys][:, key_head], sums[1], problem.dtype)


def _require_like(name: str, array: Array, shape: tuple[int, ...], dtype: str) -> None:
    assert (array.shape, array.dtype.name) == (shape, dtype), f"{name} of another shape or dtype"
