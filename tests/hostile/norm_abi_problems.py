# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Calls of aiter/norm.h as hypothesis draws them: right ones, and changes of them.

A call is judged by the final content of its structs, drawn or changed.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy
from hypothesis import strategies as st

from tests.hostile import abi
from tests.hostile.memory import Array, many_bits

_ROOM = 1 << 18  # bytes for arrays
LAYER, RMS = 1, 2
NO_MASK, EXPLICIT, CAUSAL = range(3)
BLOCKS = 2  # of attn_norm_scales
DTYPES = {
    1: numpy.dtype(numpy.float16),
    2: numpy.dtype(ml_dtypes.bfloat16),
    3: numpy.dtype(numpy.float32),
    4: numpy.dtype(ml_dtypes.float8_e4m3fn),
    5: numpy.dtype(ml_dtypes.float8_e5m2),
}
_WIDE = (1, 2, 3)  # types but fp8
_FLOAT, _BYTE = numpy.dtype(numpy.float32), numpy.dtype(numpy.uint8)
FUNCTIONS = ("norm_fwd", "norm_bwd", "softmax_fwd", "softmax_bwd")

_INT32 = (-(2**31), -2, -1, 0, 1, 2, 3, 4, 5, 6, 10, 2**31 - 1)
_INT64 = (-(2**63), -(2**40), -1, 0, 1, 2, 3, 7, 8, 64, 1000, 2**27, 2**31, 2**40, 2**62, 2**63 - 1)
_FLOATS = (float("nan"), float("inf"), -float("inf"), -1.0, 0.0, -0.0, 1e-45, 1e-30, 1.0, 3e38)
_SIZES = (0, 1, 4, 55, 56, 63, 64, 65, 119, 120, 127, 128, 136, 1024, 65536, 65537, 2**32 - 1)


@dataclasses.dataclass(frozen=True)
class Drawn:
    function: str
    kind: int  # of the norm, or of the mask
    rows: int  # of softmax: matrices of `queries` rows
    columns: int
    queries: int
    dtypes: tuple[int, int, int]  # of x, of the weights, of y
    options: int  # a bit for each operand that may be left out
    strides: int  # two bits for each matrix: its rows' distance
    number: float  # epsilon or scale
    bits: int
    changes: tuple[tuple[int, int], ...]  # (which field, which of the odd values)
    device: int


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    function = draw(st.sampled_from(FUNCTIONS))
    softmax, forward = function.startswith("softmax"), function == "norm_fwd"
    dtype = st.sampled_from(_WIDE)
    number = st.integers(0, 1 << 16)
    return Drawn(
        function,
        draw(st.integers(0, 2) if softmax else st.integers(1, 2)),
        draw(st.integers(0, 4)) * (2 if softmax else 1),
        draw(st.one_of(st.integers(1, 20), st.just(257))),
        draw(st.integers(1, 5)),
        (draw(dtype), draw(dtype), draw(st.integers(1, 5) if forward else dtype)),
        draw(st.integers(0, 255)),
        draw(st.integers(0, 255)),
        draw(st.floats(2.0**-10, 2.0, width=32)),
        draw(many_bits()),
        tuple(draw(st.lists(st.tuples(number, number), max_size=3))),
        draw(st.sampled_from((abi.CPU,) * 7 + (abi.CUDA,))),
    )


@dataclasses.dataclass(frozen=True)
class Operand:
    """The structs' numbers of one: rows of `columns` elements each, `stride` elements apart."""

    name: str
    is_output: bool
    address: int
    rows: int
    columns: int
    stride: int
    dtype: numpy.dtype[Any]
    may_be_null: bool = False


@functools.cache
def _arena() -> abi.Arena:
    return abi.Arena(_ROOM + 2 * abi.MOST_STRUCT_SIZE)


class Call:
    """A drawn call in memory. args and problem are the structs as the library gets them."""

    def __init__(self, drawn: Drawn) -> None:
        self.drawn = drawn
        self.softmax = drawn.function.startswith("softmax")
        self.forward = drawn.function.endswith("fwd")
        self.arena = _arena()
        self._random = numpy.random.default_rng(drawn.bits)
        self._at = 0
        self.arena.bytes[:_ROOM] = self._random.integers(0, 256, _ROOM, numpy.uint8)
        self._make()
        for change in drawn.changes:
            self._apply(*change)
        self.before = self.arena.bytes.copy()

    def _make(self) -> None:
        d = self.drawn
        problem = abi.struct("attn_softmax_problem" if self.softmax else "attn_norm_problem")()
        problem.struct_size = ctypes.sizeof(problem)
        problem.device_type = d.device
        if self.softmax:
            problem.mask_kind, problem.dtype = d.kind, d.dtypes[0]
            problem.rows, problem.columns, problem.queries = (
                d.rows * d.queries,
                d.columns,
                d.queries,
            )
            problem.mask_repeat = 1 + d.options % 2 if d.kind == EXPLICIT else 0
            problem.scale = d.number
        else:
            problem.kind, problem.rows, problem.hidden = d.kind, d.rows, d.columns
            problem.x_dtype, problem.weight_dtype, problem.y_dtype = d.dtypes
            problem.zero_centred = d.options >> 7
            problem.epsilon = d.number
        self.problem = self.arena.place(problem, _ROOM)
        args = abi.struct(f"attn_{d.function}_args")()
        args.struct_size = ctypes.sizeof(args)
        args.problem = ctypes.addressof(self.problem)
        self.args = self.arena.place(args, _ROOM + abi.MOST_STRUCT_SIZE)
        left_out = set()
        if not self.softmax:
            left_out = {"beta", "mean"} if d.kind == RMS else set()
            left_out |= {"dbeta"} if d.kind == RMS else set()
            left_out |= {"scale", "amax"} if d.dtypes[2] in _WIDE else set()
            left_out |= {"scales"}  # changes may set them
            optional = ("beta", "mean", "rstd", "scale", "amax", "dbeta")
            if self.forward:
                left_out |= {n for i, n in enumerate(optional) if d.options >> i & 1}
                left_out |= {"residual", "sum"} if d.options >> 6 & 1 else set()
            else:
                left_out |= {n for i, n in enumerate(("dbeta", "dh")) if d.options >> i & 1}
        for i, operand in enumerate(list(self.operands(all_of_them=True))):
            if operand.name in left_out or (operand.name == "mask" and d.kind != EXPLICIT):
                continue
            self._place(operand, d.strides >> 2 * (i % 4) & 3)

    def _place(self, operand: Operand, layout: int) -> None:
        """Gives an operand memory with numbers in it."""
        field = getattr(self.args, operand.name)
        is_matrix = isinstance(field, ctypes.Structure)
        stride = operand.columns + (0, 1, 3, 8)[layout] if is_matrix else operand.columns
        size = operand.dtype.itemsize
        self._at += -self._at % 64
        if is_matrix:
            field.data, field.stride = self.arena.address + self._at, stride
        else:
            setattr(self.args, operand.name, self.arena.address + self._at)
        shape = (operand.rows, operand.columns)
        view = self.arena.view(self.arena.address + self._at, shape, (stride, 1), operand.dtype)
        assert view is not None
        if operand.dtype == _BYTE:
            view[...] = self._random.integers(0, 2, shape)
        else:
            view[...] = self._random.standard_normal(shape).astype(operand.dtype)
        self._at += max(operand.rows * stride, operand.columns) * size + 64

    def fields(self) -> Iterator[tuple[Any, str, Any]]:
        """(struct, field, its type) of everything that can be changed."""
        for made in (self.problem, self.args):
            for name, kind in made._fields_:
                if kind is abi.struct("attn_rows"):
                    yield from ((getattr(made, name), *field[:2]) for field in kind._fields_)
                else:
                    yield made, name, kind

    def _apply(self, field: int, which: int) -> None:
        fields = list(self.fields())
        made, name, kind = fields[field % len(fields)]
        if kind is ctypes.c_void_p:
            value = self._pointer(getattr(made, name), name == "problem", which)
        else:
            choices: dict[Any, tuple[Any, ...]] = {
                ctypes.c_float: _FLOATS,
                ctypes.c_int64: _INT64,
                ctypes.c_int32: _INT32,
            }
            of_kind = _SIZES if name == "struct_size" else choices.get(kind, _INT32)
            value = of_kind[which % len(of_kind)]
        setattr(made, name, value)

    def _pointer(self, own: int | None, is_struct: bool, which: int) -> int | None:
        """NULL; any place of the arena; where another pointer points, or close by; or, for a GPU
        that is not there, anywhere."""
        if which % 4 == 0:
            return None
        if is_struct:
            return own
        if which % 4 == 1 and self.drawn.device != abi.CPU:
            return (1 << 63) - 1 - which * 4096
        if which % 4 == 1:
            return self.arena.address + which * 2 % _ROOM
        pointers = [
            int(getattr(made, name))
            for made, name, kind in self.fields()
            if kind is ctypes.c_void_p and name not in ("problem", "stream") and getattr(made, name)
        ]
        near = pointers[which // 4 % len(pointers)] if pointers else self.arena.address
        return near + (which // 4 % 64 if which % 4 == 3 else 0)

    # The structs' numbers.

    def is_plausible(self) -> bool:
        """Whether the numbers of the problem are ones that the ABI allows on the CPU."""
        p = self.problem
        if not self.args.problem or p.device_type != abi.CPU or p.device_id != 0:
            return False
        if not 0 <= p.rows <= 2**31 - 2**20:
            return False
        if not self.softmax:
            return (
                p.kind in (LAYER, RMS)
                and 1 <= p.hidden < 2**31
                and p.x_dtype in _WIDE
                and p.weight_dtype in _WIDE
                and p.y_dtype in (DTYPES if self.forward else _WIDE)
                and p.zero_centred in (0, 1)
                and 0 <= p.epsilon < math.inf
                and p.reserved == 0
            )
        if not 1 <= p.columns < 2**31 or not 1 <= p.queries < 2**31 or p.dtype not in _WIDE:
            return False
        if p.mask_kind not in (NO_MASK, EXPLICIT, CAUSAL) or not math.isfinite(p.scale):
            return False
        if p.mask_kind != NO_MASK and p.rows % p.queries:
            return False
        if p.mask_kind != EXPLICIT:
            return bool(p.mask_repeat == 0)
        return bool(p.mask_repeat >= 1 and p.rows // p.queries % p.mask_repeat == 0)

    def operands(self, all_of_them: bool = False) -> Iterator[Operand]:
        """Those that the call has; or could have. Of a plausible problem."""
        p, a = self.problem, self.args
        columns = p.columns if self.softmax else p.hidden

        def matrix(name: str, out: bool, dtype: int, optional: bool = False) -> Iterator[Operand]:
            m = getattr(a, name)
            if all_of_them or m.data or not optional:
                stride = m.stride if p.rows > 1 else columns
                yield Operand(name, out, m.data or 0, p.rows, columns, stride, DTYPES[dtype])

        def vector(
            name: str, out: bool, count: int, dtype: numpy.dtype[Any], optional: bool = False
        ) -> Iterator[Operand]:
            data = getattr(a, name)
            if all_of_them or data or not optional:
                yield Operand(name, out, data or 0, 1, count, count, dtype)

        if self.softmax:
            for name in ("x",) if self.forward else ("y", "dy"):
                yield from matrix(name, False, p.dtype)
            yield from matrix("y" if self.forward else "dx", True, p.dtype)
            if self.forward and p.mask_kind == EXPLICIT:
                yield from vector("mask", False, p.rows // p.mask_repeat * columns, _BYTE)
            return
        x, w, y = p.x_dtype, DTYPES[p.weight_dtype], p.y_dtype
        layer = p.kind == LAYER
        yield from matrix("x", False, x)
        yield from vector("gamma", False, columns, w, optional=True)
        if self.forward:
            yield from matrix("y", True, y)
            both = not (a.residual.data or a.sum.data)
            yield from matrix("residual", False, x, optional=both)
            yield from matrix("sum", True, x, optional=both)
            yield from vector("beta", False, columns, w, optional=True)
            yield from vector("mean", True, p.rows, _FLOAT, optional=True)
            yield from vector("rstd", True, p.rows, _FLOAT, optional=True)
            yield from vector("scale", False, 1, _FLOAT, optional=True)
            yield from vector("amax", True, 1, _FLOAT, optional=True)
            if a.scales_kind == BLOCKS:
                yield from vector("scales", True, p.rows * (columns // 32), _BYTE, optional=True)
            else:
                yield from vector("scales", True, p.rows, _FLOAT, optional=True)
            return
        yield from matrix("dy", False, y)
        yield from matrix("dx", True, x)
        yield from matrix("dh", False, x, optional=True)
        yield from vector("mean", False, p.rows, _FLOAT, optional=not layer)
        yield from vector("rstd", False, p.rows, _FLOAT)
        yield from vector("dgamma", True, columns, w, optional=True)
        yield from vector("dbeta", True, columns, w, optional=True)

    def view(self, operand: Operand) -> Array | None:
        """Its elements [rows, columns]; None: not all of them in the arena."""
        shape = (operand.rows, operand.columns)
        if 0 in shape:
            return numpy.zeros(shape, operand.dtype)
        return self.arena.view(operand.address, shape, (operand.stride, 1), operand.dtype)

    def is_safe(self) -> bool:
        """Whether the caller kept the promise that the memory which the structs describe is there,
        and is little enough to wait for. A NULL is no promise."""
        if not self.is_plausible():
            return True
        elements = self.problem.rows * (
            self.problem.columns if self.softmax else self.problem.hidden
        )
        if elements > 1 << 16:
            return False
        return all(o.address == 0 or self.view(o) is not None for o in self.operands())

    def is_overwritten(self, operand: Operand) -> bool:
        """Whether an output takes the place of all of an input, as it may."""
        name = {"x": "y", "residual": "sum"}.get(operand.name) if self.forward else None
        if name is None or self.softmax:
            return False
        (output,) = (o for o in self.operands() if o.name == name)
        return (output.address, output.stride, output.dtype.itemsize) == (
            operand.address,
            operand.stride,
            operand.dtype.itemsize,
        )

    def shared_bytes(self) -> int:
        """Bytes of outputs that belong to something else, too."""
        uses = numpy.zeros(len(self.arena.bytes), numpy.int32)
        operands = [o for o in self.operands() if o.rows and o.columns]
        for operand in [o for o in operands if o.is_output]:
            numpy.add.at(uses, self._offsets(operand), 1)
        shared = int((uses > 1).sum())
        for operand in [o for o in operands if not o.is_output and not self.is_overwritten(o)]:
            shared += int(uses[self._offsets(operand)].sum())
        return shared

    def _offsets(self, operand: Operand) -> Array:
        first = operand.address - self.arena.address
        size = operand.dtype.itemsize
        rows = numpy.arange(operand.rows)[:, None] * operand.stride * size
        return (first + rows + numpy.arange(operand.columns * size)).ravel()
