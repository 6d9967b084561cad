# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Arrays with guard bytes around and between their elements, laid out in any way that is legal."""

from __future__ import annotations

import itertools
import random
from typing import Any

import ml_dtypes
import numpy
from hypothesis import strategies as st

Array = Any  # numpy.ndarray, of any dtype

DTYPES = {
    "float16": numpy.dtype(numpy.float16),
    "bfloat16": numpy.dtype(ml_dtypes.bfloat16),
    "float32": numpy.dtype(numpy.float32),
    "int32": numpy.dtype(numpy.int32),
}
_GUARD = 64  # bytes on either side; a multiple of every alignment
_CANARY = numpy.frombuffer(bytes(range(131, 251)) * 64, numpy.uint8)
_ORDERS = {n: tuple(itertools.permutations(range(n))) for n in range(4)}
# Standard normal numbers, for arrays to be cut out of.
_NORMAL = numpy.random.default_rng(7).standard_normal(1 << 16)

LAYOUTS = 1 << 12


def many_bits() -> st.SearchStrategy[int]:
    """128 bits, for what needs no shrinking of its own: few draws are many examples. 0 is plain."""
    return st.integers(0, 2**32 - 1).map(lambda n: random.Random(n).getrandbits(128) if n else 0)


class Guarded:
    """An array within bytes that no access may touch.

    layout, from 0 (contiguous) to LAYOUTS - 1, chooses the order of all dimensions but the last in
    memory, which of them run backwards, gaps between rows, and where the first row begins. The last
    dimension is always contiguous. `shared` dimensions have stride 0: for inputs alone.
    """

    def __init__(
        self, shape: tuple[int, ...], dtype: str, layout: int = 0, shared: tuple[int, ...] = ()
    ) -> None:
        kind = DTYPES[dtype]
        *outer, last = shape
        order = _ORDERS[len(outer)][layout % 6 % len(_ORDERS[len(outer)])]
        backwards, padding = layout // 6 % 8, layout // 48 % 4
        gap, lead = 1 + layout // 192 % 2, layout // 384 % 2
        strides, first, width = [0] * len(outer), lead, last + padding
        for dim in reversed(order):
            if dim in shared:
                continue
            extent = max(outer[dim], 1)
            strides[dim], gap = width * gap, 1
            width = strides[dim] * extent
            if backwards >> dim & 1:
                first += strides[dim] * (extent - 1)
                strides[dim] = -strides[dim]
        size = 2 * _GUARD + (lead + width) * kind.itemsize
        self._bytes = numpy.resize(_CANARY, size).copy()  # of its own
        self.view: Array = numpy.ndarray(
            shape,
            kind,
            self._bytes,
            _GUARD + first * kind.itemsize,
            (*(s * kind.itemsize for s in strides), kind.itemsize),
        )
        self.remember()

    @property
    def room(self) -> int:
        """Bytes that all of its layout takes, without the guards."""
        return len(self._bytes) - 2 * _GUARD

    def moved(self, memory: Array, at: int) -> Array:
        """An array of this shape and layout in other memory (uint8), `at` bytes from its start."""
        inside = at + self.view.ctypes.data - self._bytes.ctypes.data - _GUARD
        return numpy.ndarray(self.view.shape, self.view.dtype, memory, inside, self.view.strides)

    def fill(self, values: Array) -> Guarded:
        self.view[...] = values
        self.remember()
        return self

    def draw(self, seed: int, amplitude: float) -> Guarded:
        size = self.view.size
        start = seed * 7919 % (len(_NORMAL) - size) if size < len(_NORMAL) else 0
        return self.fill(numpy.resize(_NORMAL[start : start + size], self.view.shape) * amplitude)

    def remember(self) -> None:
        self._before = self._bytes.copy()

    def require_untouched(self, name: str) -> None:
        assert numpy.array_equal(self._bytes, self._before), f"{name} was written to"

    def require_only_elements_written(self, name: str) -> None:
        after, got = self._bytes.copy(), self.view.copy()
        self._bytes[...] = self._before
        self.view[...] = got
        assert numpy.array_equal(self._bytes, after), f"beside {name}, its guard bytes were written"
