# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Calls of the C ABI as hypothesis draws them: right ones, and changes of them.

A call is judged by the final content of its structs, drawn or changed.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy
from hypothesis import strategies as st

from tests.emulation.harness import dropout
from tests.hostile import abi, oracle
from tests.hostile.memory import DTYPES, LAYOUTS, Array, Guarded, many_bits

_ROOM = 1 << 20  # bytes for arrays
_NONE, _TOP_LEFT, _BOTTOM_RIGHT = range(3)
_INPUTS = {False: ("q", "k", "v"), True: ("q", "k", "v", "o", "dout")}
_OUTPUTS = {False: ("o",), True: ("dq", "dk", "dv")}
_OF_SCORES = ("bias", "dbias")
_NO_BIAS, _ELEMENTWISE, _ALIBI = range(3)
_OF_KEYS = ("k", "v", "dk", "dv")
_OF_QK = ("q", "k", "dq", "dk")

_INT32 = (-(2**31), -2, -1, 0, 1, 2, 3, 5, 8, 17, 64, 1000, 2**30, 2**31 - 1)
_STRIDES = (-(2**63), -(2**40), -9, -1, 0, 1, 2, 7, 8, 64, 1000, 2**31, 2**62, 2**63 - 1)
_SCALES = (float("nan"), float("inf"), -float("inf"), -1.0, 0.0, -0.0, 1e-45, 1e-30, 1.0, 3e38)
_SIZES = (0, 1, 4, 95, 96, 97, 151, 152, 296, 300, 384, 1024, 65536, 65537, 2**31, 2**32 - 1)


# Head sizes; most are of kernels that every variant set has.
_GPU_SIZES = ((64, 64), (64, 64), (64, 64), (128, 128), (40, 8))


@dataclasses.dataclass(frozen=True)
class Change:
    """A field ("problem.batch", "args.q.stride_seq") set to the which-th of what its type takes.

    A pointer becomes NULL, another one, or any in the arena.
    """

    field: int
    which: int


@dataclasses.dataclass(frozen=True)
class Drawn:
    backward: bool
    group: bool
    dtype: int
    lengths: tuple[tuple[int, int], ...]
    heads_k: int
    heads: int  # query heads per key head
    head_size: int
    head_size_v: int
    mask: int
    window: tuple[int, int]
    scale: float
    bits: int
    bias: int
    cap: float
    dropout: float
    skipped: int  # min_seqlen_q
    changes: tuple[Change, ...]
    device: int = abi.CPU


@st.composite
def drawn(draw: st.DrawFn, device: int = abi.CPU) -> Drawn:
    on_gpu = device == abi.ROCM
    length = st.one_of(st.integers(0, 9), st.sampled_from((1, 17)))
    group = draw(st.sampled_from((False, False, True) if on_gpu else (False, True)))
    if group:
        lengths = tuple(draw(st.lists(st.tuples(length, length), max_size=3)))
    else:
        lengths = ((draw(length), draw(length)),) * draw(st.integers(0, 2))
    any_size = st.integers(1, 17)
    mask = draw(st.integers(0, 2))
    bound = st.one_of(st.just(-1), st.integers(0, 20), st.just(2**31 - 1))
    number = st.integers(0, 1 << 16)
    return Drawn(
        draw(st.booleans()),
        group,
        draw(st.sampled_from((1, 1, 2) if on_gpu else (1, 2, 3))),
        lengths,
        draw(st.integers(1, 2)),
        draw(st.integers(1, 2)),
        *draw(st.sampled_from(_GPU_SIZES) if on_gpu else st.tuples(any_size, any_size)),
        mask,
        (draw(bound), draw(bound)) if mask else (-1, -1),
        draw(st.floats(2.0**-6, 2.0)),
        draw(many_bits()),
        # Traits that no variant set's kernels have are drawn for the CPU alone.
        *((0, 0.0, 0.0, 0) if on_gpu else draw(_features(group))),
        draw(st.lists(st.builds(Change, number, number), max_size=1 if on_gpu else 3).map(tuple)),
        device,
    )


def _features(group: bool) -> st.SearchStrategy[tuple[int, float, float, int]]:
    some = st.tuples(
        st.sampled_from((_NO_BIAS, _ELEMENTWISE, _ALIBI)),
        st.sampled_from((0.0, 0.75, 8.0)),
        st.sampled_from((0.0, 0.3)),
        st.integers(0, 2) if group else st.just(0),
    )
    return st.one_of(st.just((_NO_BIAS, 0.0, 0.0, 0)), some)


@functools.cache
def _arena() -> abi.Arena:
    return abi.Arena(_ROOM + 2 * abi.MOST_STRUCT_SIZE)


@functools.cache
def _values(dtype: str) -> Array:
    numbers = numpy.random.default_rng(11).standard_normal(_ROOM // 2)
    return numbers.astype(DTYPES[dtype]).view(numpy.uint8)[:_ROOM]


class Call:
    """A drawn call in memory. args and problem are the structs as the library gets them."""

    def __init__(self, drawn: Drawn) -> None:
        self.drawn = drawn
        self.backward = drawn.backward
        self.arena = _arena()
        self._at = 0
        # Every byte is some number of the dtype, but where lse and cu_seqlens are.
        self.arena.bytes[:_ROOM] = _values(abi.DTYPES[drawn.dtype])
        self._make()
        for change in drawn.changes:
            self._apply(change)
        self.before = self.arena.bytes.copy()

    def _allocate(self, shape: tuple[int, ...], dtype: str, layout: int) -> Array:
        frame = Guarded(shape, dtype, layout)
        view = frame.moved(self.arena.bytes, self._at)
        self._at += frame.room + 64
        self._at += -self._at % 64
        assert self._at <= _ROOM
        return view

    def _make(self) -> None:
        d = self.drawn
        starts = [
            numpy.array([0, *numpy.cumsum([pair[side] for pair in d.lengths])], numpy.int32)
            for side in (0, 1)
        ]
        problem = abi.struct("attn_problem")()
        problem.struct_size = ctypes.sizeof(problem)
        problem.mode = abi.GROUP if d.group else abi.BATCH
        problem.device_type = d.device
        problem.dtype = d.dtype
        problem.batch = len(d.lengths)
        problem.heads_q, problem.heads_k = d.heads * d.heads_k, d.heads_k
        problem.head_size_qk, problem.head_size_v = d.head_size, d.head_size_v
        problem.seqlen_q, problem.seqlen_k = (
            max((pair[side] for pair in d.lengths), default=2) for side in (0, 1)
        )
        if d.group:
            problem.total_q, problem.total_k = (int(s[-1]) for s in starts)
            for name, values in zip(("cu_seqlens_q", "cu_seqlens_k"), starts, strict=True):
                view = self._allocate(values.shape, "int32", 0)
                view[...] = values
                setattr(problem, name, view.ctypes.data)
        problem.softmax_scale = d.scale
        problem.mask = d.mask
        problem.window_left, problem.window_right = d.window
        problem.bias, problem.logits_soft_cap, problem.dropout_p = d.bias, d.cap, d.dropout
        problem.dropout_seed, problem.dropout_offset = d.bits, d.bits >> 7
        self.problem = self.arena.place(problem, _ROOM)

        args = abi.struct("attn_bwd_args" if d.backward else "attn_fwd_args")()
        args.struct_size = ctypes.sizeof(args)
        args.problem = ctypes.addressof(self.problem)
        self.args = args
        if d.backward:
            args.bias_grad, args.deterministic = int(d.bias == _ELEMENTWISE), d.bits >> 3 & 1
            args.dbias_sums = d.bits >> 6 & (6 if d.group else 7) if args.bias_grad else 0
        else:
            args.min_seqlen_q = d.skipped
        if d.bias == _ALIBI:
            slopes = self._allocate((problem.batch, problem.heads_q), "float32", 0)
            slopes[...] = 0.25
            slopes[..., ::2] = 0.03
            args.alibi_slopes = slopes.ctypes.data
            args.alibi_stride_batch = d.bits >> 5 & 1 and problem.heads_q
        for i, name in enumerate(self.inputs + self.outputs):
            # On the GPU rows begin at multiples of 8 elements: no padding, no lead.
            layout = d.bits >> 12 * i & LAYOUTS - 1
            layout = layout % 6 + 192 * (layout // 192 % 2) if d.device == abi.ROCM else layout
            view = self._allocate(self.shape(name), abi.DTYPES[d.dtype], layout)
            strides = [s // view.itemsize for s in view.strides[:-1]]
            tensor = getattr(args, name)
            tensor.data = view.ctypes.data
            tensor.stride_batch, tensor.stride_seq, tensor.stride_head = (
                strides if len(strides) == 3 else [-7, *strides]
            )
        lse = self._allocate(self.shape("lse"), "float32", 0)
        lse[...] = 1.5
        if d.backward or d.bits % 8 != 7:
            args.lse = lse.ctypes.data
        if d.device == abi.ROCM:
            self._at += -self._at % 256
            args.workspace = self.arena.address + self._at
            args.workspace_size = _ROOM - self._at
        self.args = self.arena.place(args, _ROOM + abi.MOST_STRUCT_SIZE)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The tensors that the call reads, as its structs say in the end."""
        of_bias = ("bias",) if self.problem.bias == _ELEMENTWISE else ()
        return _INPUTS[self.backward] + of_bias

    @property
    def outputs(self) -> tuple[str, ...]:
        grad = self.backward and self.args.bias_grad == 1
        return _OUTPUTS[self.backward] + (("dbias",) if grad else ())

    @property
    def dbias_sums(self) -> tuple[bool, bool, bool]:
        """Whether dbias is summed over batch, queries and heads; older structs do not say it."""
        kind = type(self.args)
        is_known = self.backward and self.args.struct_size > kind.dbias_sums.offset
        sums = self.args.dbias_sums if is_known else 0
        return bool(sums & 1), bool(sums & 4), bool(sums & 2)

    def fields(self) -> Iterator[tuple[Any, str, Any]]:
        """(struct, field, its type) of everything that can be changed."""
        for made in (self.problem, self.args):
            for name, kind in made._fields_:
                if kind is abi.struct("attn_tensor"):
                    yield from ((getattr(made, name), *field[:2]) for field in kind._fields_)
                else:
                    yield made, name, kind

    def _apply(self, change: Change) -> None:
        fields = list(self.fields())
        made, name, kind = fields[change.field % len(fields)]
        if kind is ctypes.c_void_p:
            value = self._pointer(getattr(made, name), name == "problem", change.which)
        else:
            choices: dict[Any, tuple[Any, ...]] = {
                ctypes.c_float: _SCALES,
                ctypes.c_int64: _STRIDES,
                ctypes.c_int32: _INT32,
            }
            of_kind = _SIZES if name == "struct_size" else choices.get(kind, _INT32)
            value = of_kind[change.which % len(of_kind)]
        setattr(made, name, value)

    def _pointer(self, own: int | None, is_struct: bool, which: int) -> int | None:
        """NULL; where another pointer points, or close by; or any place of the arena."""
        if which % 4 == 0:
            return None
        if is_struct:
            return own
        if which % 4 == 1:
            return self.arena.address + which * 2 % _ROOM
        pointers = [
            int(getattr(made, name))
            for made, name, kind in self.fields()
            if kind is ctypes.c_void_p and name != "problem" and getattr(made, name)
        ]
        near = pointers[which // 4 % len(pointers)] if pointers else self.arena.address
        return near + (which // 4 % 64 if which % 4 == 3 else 0)

    # The structs' numbers.

    @property
    def is_group(self) -> bool:
        return bool(self.problem.mode == abi.GROUP)

    def extents(self, name: str) -> tuple[int, int, int, int]:
        p = self.problem
        of_keys = name in _OF_KEYS
        size = p.head_size_qk if name in _OF_QK else p.head_size_v
        if name in _OF_SCORES:
            size = p.seqlen_k
        heads = p.heads_k if of_keys else p.heads_q
        if self.is_group:
            extents = (1, (p.total_k if of_keys else p.total_q), heads)
        else:
            extents = (p.batch, (p.seqlen_k if of_keys else p.seqlen_q), heads)
        if name == "dbias":
            pairs = zip(extents, self.dbias_sums, strict=True)
            extents = tuple(1 if summed else extent for extent, summed in pairs)
        return *extents, size

    def shape(self, name: str) -> tuple[int, ...]:
        """As drawn: the arrays that a right call has."""
        batch, seq, heads, size = self.extents("q" if name == "lse" else name)
        shape = (heads, seq) if name == "lse" else (seq, heads, size)
        return shape if self.is_group else (batch, *shape)

    def is_plausible(self) -> bool:
        """Whether the numbers that extents are made of are ones that the ABI allows."""
        p = self.problem
        least = {"batch": 0, "seqlen_q": 0, "seqlen_k": 0, "total_q": 0, "total_k": 0}
        ones = dict.fromkeys(("heads_q", "heads_k", "head_size_qk", "head_size_v"), 1)
        return (
            p.mode in (abi.BATCH, abi.GROUP)
            and p.dtype in abi.DTYPES
            and all(getattr(p, name) >= at for name, at in (least | ones).items())
            and p.heads_q % p.heads_k == 0
        )

    def view(self, name: str) -> Array | None:
        """A tensor [batch, seq, heads, head_size], of raw bits; None: not all in the arena."""
        tensor = getattr(self.args, name)
        shape = self.extents(name)
        strides = (tensor.stride_batch, tensor.stride_seq, tensor.stride_head, 1)
        if self.is_group:
            strides = (0, *strides[1:])
        # The stride of a dimension with one entry is ignored.
        used = tuple(s if n > 1 else 0 for n, s in zip(shape, strides, strict=True))
        if 0 in shape:
            return numpy.zeros(shape, DTYPES[abi.DTYPES[self.problem.dtype]])
        return self.arena.view(
            tensor.data or 0, shape, used, DTYPES[abi.DTYPES[self.problem.dtype]]
        )

    def lse_view(self) -> Array | None:
        """[batch, heads, seq]; None: not wanted, or not all in the arena."""
        batch, seq, heads, _ = self.extents("q")
        shape, strides = (batch, heads, seq), (heads * seq, seq, 1)
        return self.arena.view(self.args.lse or 0, shape, strides, numpy.float32)

    def slopes(self) -> Array | None:
        """[batch, heads]; None: not all in the arena."""
        p, strides = self.problem, (self.args.alibi_stride_batch, 1)
        return self.arena.view(self.args.alibi_slopes, (p.batch, p.heads_q), strides, numpy.float32)

    def starts(self) -> tuple[Array, Array] | None:
        """cu_seqlens of q and k in group mode, or None where they are not in the arena."""
        both = [
            self.arena.view(address or 0, (self.problem.batch + 1,), (1,), numpy.int32)
            for address in (self.problem.cu_seqlens_q, self.problem.cu_seqlens_k)
        ]
        return None if both[0] is None or both[1] is None else (both[0], both[1])

    def is_safe(self) -> bool:
        """Whether the caller kept the promise that the memory which the structs describe is there,
        and is little enough to wait for. A NULL is no promise."""
        if not self.args.problem or not self.is_plausible():
            return True
        p = self.problem
        for name in self.inputs + self.outputs:
            if getattr(self.args, name).data and self.view(name) is None:
                return False
        if self.args.alibi_slopes and p.batch and self.slopes() is None:
            return False
        if self.args.lse and self.extents("q")[0] and self.lse_view() is None:
            return False
        if self.args.sink or (self.backward and self.args.dsink):
            return False  # no problem here has one
        if p.seqused_q or p.seqused_k or p.cu_seqused_q or p.cu_seqused_k:
            return False  # none is padded here
        if p.device_type == abi.ROCM and self.workspace() is None:
            return False
        if self.is_group and p.cu_seqlens_q and p.cu_seqlens_k and self.starts() is None:
            return False
        work = math.prod(self.extents("q")) * max(p.seqlen_k, 1) * max(p.head_size_v, 1)
        memory = max(p.seqlen_k, 1) * max(p.head_size_qk, p.head_size_v)
        return math.prod(self.extents("q")) == 0 or (work < 1 << 20 and memory < 1 << 20)

    def workspace(self) -> Array | None:
        """As many bytes as the library says that it needs there; None: not all in the arena."""
        needed = ctypes.c_uint64(0)
        direction = "bwd" if self.backward else "fwd"
        abi.function(f"{direction}_workspace_size")(ctypes.byref(self.args), ctypes.byref(needed))
        if not needed.value or not self.args.workspace:
            return numpy.zeros(0, numpy.uint8)
        return self.arena.view(self.args.workspace, (needed.value,), (1,), numpy.uint8)

    def sequences(self) -> Iterator[tuple[int, int, slice, slice]]:
        """(which it is, entry of the tensors, rows of q, rows of k) of each sequence."""
        if not self.is_group:
            yield from ((i, i, slice(None), slice(None)) for i in range(self.problem.batch))
        elif starts := self.starts():
            for i in range(self.problem.batch):
                yield i, 0, slice(*starts[0][i : i + 2]), slice(*starts[1][i : i + 2])

    def more(
        self, index: int, head: int, bias: Array | None, queries: int, keys: int
    ) -> oracle.More:
        """Changes of the scores of a head of a sequence; bias: its part of that."""
        p = self.problem
        added: Any = 0.0
        if p.bias == _ELEMENTWISE and bias is not None:
            added = bias[:, :keys].astype(numpy.float64)
        if p.bias == _ALIBI and (slopes := self.slopes()) is not None:
            # As attn.h says: of a causal mask the key, else the distance from the diagonal.
            rows, columns = numpy.arange(queries)[:, None], numpy.arange(keys)[None]
            causal = p.mask != _NONE and p.window_right == 0 and p.window_left < 0
            shift = 0 if p.mask == _TOP_LEFT else keys - queries
            distance = columns + 0 * rows if causal else -abs(columns - rows - shift)
            added = numpy.float64(slopes[index, head]) * distance
        kept: Any = 1.0
        if p.dropout_p > 0:
            state = (p.dropout_seed, p.dropout_offset)
            numbers = dropout.random_bytes(queries, keys, index, head, p.heads_q, *state)
            kept = dropout.kept(p.dropout_p, numbers) / (1 - numpy.float64(p.dropout_p))
        return oracle.More(float(p.logits_soft_cap), added, kept)

    def is_small(self) -> bool:
        """Whether every element can be looked at; inputs of stride 0 have as many as they like."""
        return max(self.problem.batch, self.problem.heads_q) < 100 and all(
            math.prod(self.extents(name)) < 1 << 15 for name in self.inputs + self.outputs
        )

    def shared_bytes(self) -> int:
        """Bytes of outputs that belong to something else, too."""
        outputs = [self.view(name) for name in self.outputs]
        inputs = [self.view(name) for name in self.inputs]
        if self.problem.bias == _ALIBI and self.problem.batch:
            inputs.append(self.slopes())
        (inputs if self.backward else outputs).append(self.lse_view() if self.args.lse else None)
        inputs += self.starts() or () if self.is_group else ()
        uses = numpy.zeros(len(self.arena.bytes), numpy.int32)
        shared = 0
        for view in [v for v in outputs if v is not None]:
            numpy.add.at(uses, self._offsets(view), 1)
        shared += int((uses > 1).sum())
        for view in [v for v in inputs if v is not None]:
            shared += int(uses[self._offsets(view)].sum())
        return shared

    def _offsets(self, view: Array) -> Array:
        """Where in the arena its bytes are, each as often as it is in view."""
        if view.size == 0:
            return numpy.zeros(0, numpy.int64)
        offsets = numpy.int64(view.__array_interface__["data"][0] - self.arena.address)
        for extent, stride in zip(view.shape, view.strides, strict=True):
            offsets = offsets[..., None] + numpy.arange(extent) * stride
        return (offsets[..., None] + numpy.arange(view.itemsize)).ravel()

    def mask(self) -> oracle.Mask:
        p = self.problem
        return oracle.Mask(p.window_left, p.window_right, p.mask != _TOP_LEFT)
