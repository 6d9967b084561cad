# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention by a consumer of AITER's interface, on a device, and the right results."""

from __future__ import annotations

import ctypes
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from tests.emulation.harness.cases import Case
from tests.emulation.harness.reference import (
    DROP_OFFSET,
    DROP_SEED,
    Array,
    draw,
    from_storage,
    gradients,
    reference,
)
from tests.emulation.harness.structs import structures
from tests.emulation.verify.verdict import GATES, Gate
from tests.emulator.hip.hip import DTYPES, DeviceArray, Hip

# Of whole passes; exp and log of a GPU have errors of their own, which the emulator lacks.
_GATES = GATES | {"dq": GATES["o"], "lse": Gate(2.0, 8.0)}
_LONG_NAMES = {"fp16": "float16", "bf16": "bfloat16"}
# Of outputs before a call; and the bits of padding, a NaN of all dtypes, which nothing may read or
# write.
_UNTOUCHED, _PADDING = 7.0, np.full(2, 0x7FDA, np.uint16)
_ELEMENTWISE, _ALIBI = 1, 2

_ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)


class Consumer:
    """The functions of calls.cc in a shared object, by the prefix of their names."""

    def __init__(self, path: Path, prefix: str = "consumer") -> None:
        self._library, self._prefix = ctypes.CDLL(str(path)), prefix
        (self._call,) = structures(path, ("Call",))
        self.asks_for_workspace = bool(self._function("asks_for_workspace")())

    def _function(self, name: str, result: Any = ctypes.c_int) -> Any:
        function = getattr(self._library, f"{self._prefix}_{name}")
        function.restype = result
        return function

    def call(self) -> Any:
        call = self._call()
        self._function("defaults", None)(ctypes.byref(call))
        return call

    def forward(self, call: Any) -> float:
        return self._function("forward", ctypes.c_float)(ctypes.byref(call))

    def backward(self, call: Any, allocate: Any) -> float:
        function = self._function("backward", ctypes.c_float)
        return function(ctypes.byref(call), _ALLOCATE(allocate))

    def forward_on(self, call: Any, stream: int) -> float:
        function = self._function("forward_on", ctypes.c_float)
        return function(ctypes.byref(call), ctypes.c_void_p(stream))

    def has(self, question: str) -> bool:
        return hasattr(self._library, f"{self._prefix}_{question}")

    def answer(self, question: str, call: Any) -> int:
        """Of questions.cc."""
        return self._function(question, ctypes.c_size_t)(ctypes.byref(call))


@dataclasses.dataclass(frozen=True)
class Layout:
    """The places of sequences, with `padding` rows of queries and of keys behind each, which are in
    the library's way alone. In batch mode used rows and padding come to the same for all."""

    group: bool = False
    padding: tuple[tuple[int, int], ...] = ()
    by_sums: bool = False  # of used rows, in place of their numbers
    # The dimensions of a bias that have entries of their own.
    bias: str = "bh"


class _Rows:
    """The rows of queries, or of keys: which of a tensor's are used."""

    def __init__(self, used: list[int], padding: list[int]) -> None:
        self.used = np.array(used, np.int32)
        rooms = self.used + np.array(padding, np.int32)
        self.starts = np.concatenate([[0], np.cumsum(rooms)]).astype(np.int32)
        self.sums = np.concatenate([[0], np.cumsum(self.used)]).astype(np.int32)
        self.total, self.longest = int(self.starts[-1]), int(self.used.max())
        self.is_used = np.zeros(self.total, bool)
        for start, count in zip(self.starts, self.used, strict=False):
            self.is_used[start : start + count] = True


def _check_padding(name: str, rows: Array) -> None:
    bits = np.ascontiguousarray(rows).view(np.uint16)
    assert (bits == _PADDING[0]).all(), f"padding of {name} was written"


class Attention:
    """Arrays on a device, the consumer's call with them, and the right results."""

    def __init__(
        self, hip: Hip, consumer: Consumer, arch: str, case: Case, layout: Layout = Layout(),
        dtype: str = "fp16", sizes: tuple[int, int] = (64, 64), **fields: Any,
    ) -> None:  # fmt: skip
        self.hip, self.consumer, self.case, self.layout = hip, consumer, case, layout
        self.device = hip.device_of(arch)
        hip.make_current(self.device)
        self.stream, self.dtype = hip.stream(), dtype
        self._kept: list[Any] = []  # the memory that the call points to
        self.workspaces: list[int] = []  # bytes that were asked for
        self.inputs = draw(case, dtype, sizes, seed=11, backward=True)
        padding = layout.padding or ((0, 0),) * len(case.lengths)
        self.q, self.k = (
            _Rows([lengths[i] for lengths in case.lengths], [rows[i] for rows in padding])
            for i in (0, 1)
        )
        self.call = self._call(sizes)
        for name, value in fields.items():
            setattr(self.call, name, value)

    def _call(self, sizes: tuple[int, int]) -> Any:
        case, layout, c = self.case, self.layout, self.consumer.call()
        self._dtype_name = self.dtype.encode()
        c.dtype = ctypes.cast(ctypes.c_char_p(self._dtype_name), ctypes.c_void_p)
        c.group, c.batch, c.stream = layout.group, len(case.lengths), self.stream
        c.heads_q, c.heads_k, (c.size_qk, c.size_v) = case.heads_q, case.heads_k, sizes
        c.scale = float(self.inputs.scale)
        c.rows_q, c.rows_k = self.q.total, self.k.total
        if layout.group:
            c.longest_q, c.longest_k = self.q.longest, self.k.longest
            c.starts_q, c.starts_k = self._address(self.q.starts), self._address(self.k.starts)
        else:
            c.rows_q, c.rows_k = self.q.total // c.batch, self.k.total // c.batch
        if layout.padding and layout.by_sums:
            c.sums_q, c.sums_k = self._address(self.q.sums), self._address(self.k.sums)
        elif layout.padding:
            c.used_q, c.used_k = self._address(self.q.used), self._address(self.k.used)
        c.mask, (c.left, c.right) = case.mask, case.window
        self.tensors = {
            "q": self._rows(self.q, self.inputs.q), "k": self._rows(self.k, self.inputs.k),
            "v": self._rows(self.k, self.inputs.v), "dout": self._rows(self.q, self.inputs.dout),
        }  # fmt: skip
        for name, rows, size in (("o", self.q, sizes[1]), ("dq", self.q, sizes[0]),
                                 ("dk", self.k, sizes[0]), ("dv", self.k, sizes[1])):  # fmt: skip
            output = np.full((rows.total, case.heads_q, size), _UNTOUCHED, self._element)
            output[~rows.is_used] = _PADDING.view(self._element)[0]
            self.tensors[name] = self._put(output.reshape(*self._split(rows), *output.shape[1:]))
        for name, array in self.tensors.items():
            setattr(c, name, self._tensor(array))
        lse = np.full((case.heads_q, self.q.total), _UNTOUCHED, np.float32)
        lse[:, ~self.q.is_used] = _PADDING.view(np.float32)
        if not layout.group:
            lse = lse.reshape(case.heads_q, c.batch, c.rows_q).transpose(1, 0, 2)
        self.lse = self._put(lse)
        c.lse = self.lse.array.ctypes.data
        self._set_features(c)
        return c

    def _set_features(self, c: Any) -> None:
        if self.inputs.bias is not None:
            self._set_bias(c)
        if self.inputs.slopes is not None:
            c.bias_type, c.bias.batch = _ALIBI, self.case.heads_q
            c.bias.data = self._address(self.inputs.slopes)
        if self.case.p_drop:
            # As TransformerEngine's: the seed and the offset are where a kernel has put them.
            c.p_drop = self.case.p_drop
            c.rng_state = self._address(
                np.array([DROP_SEED, DROP_OFFSET], np.uint64).view(np.int64)
            )

    def _set_bias(self, c: Any) -> None:
        """Of batch mode: those dimensions that the layout does not name have one entry for all."""
        shape = (self.case.heads_q, c.batch, c.rows_q, c.rows_k)
        bias = self.inputs.bias.reshape(shape).copy()
        for axis, letter in enumerate("hb"):
            if letter not in self.layout.bias:
                bias[:] = bias.take([0], axis)
        self.inputs.bias = bias.reshape(self.inputs.bias.shape)
        stored = bias[: shape[0] if "h" in self.layout.bias else 1,
                      : shape[1] if "b" in self.layout.bias else 1]  # fmt: skip
        array = self._put(stored.swapaxes(0, 1).view(self._element))
        c.bias_type, c.bias.data, c.bias.row = _ELEMENTWISE, array.array.ctypes.data, c.rows_k
        per_head = c.rows_q * c.rows_k
        if "h" in self.layout.bias:
            c.bias.head = per_head
        if "b" in self.layout.bias:
            c.bias.batch = len(stored) * per_head
        # dbias has an entry for every score.
        c.wants_dbias = True
        whole = (c.batch, self.case.heads_q, c.rows_q, c.rows_k)
        self.tensors["dbias"] = self._put(np.full(whole, _UNTOUCHED, self._element))
        c.dbias.data = self.tensors["dbias"].array.ctypes.data
        c.dbias.batch, c.dbias.head, c.dbias.row = (
            self.case.heads_q * per_head, per_head, c.rows_k,
        )  # fmt: skip

    def _split(self, rows: _Rows) -> tuple[int, ...]:
        if self.layout.group:
            return (rows.total,)
        return (len(self.case.lengths), rows.total // len(self.case.lengths))

    def _put(self, data: Array) -> DeviceArray:
        array = self.hip.array(np.ascontiguousarray(data), self.stream, self.device)
        self._kept.append(array)
        return array

    def _address(self, data: Array) -> int:
        return int(self._put(data).array.ctypes.data)

    @property
    def _element(self) -> Any:
        return DTYPES[_LONG_NAMES[self.dtype]]

    def _rows(self, rows: _Rows, bits: Array) -> DeviceArray:
        """Of bits [used tokens][heads][size]."""
        out = np.full((rows.total, *bits.shape[1:]), _PADDING.view(self._element)[0])
        out[rows.is_used] = bits.view(out.dtype)
        return self._put(out.reshape(*self._split(rows), *bits.shape[1:]))

    def _tensor(self, array: DeviceArray) -> Any:
        strides = [stride // array.array.itemsize for stride in array.array.strides[:-1]]
        if len(strides) == 2:
            strides = [0, *strides]
        return type(self.consumer.call().q)(array.array.ctypes.data, *strides)

    def allocate(self, size: int) -> int:
        """Exactly the bytes that are asked for, and no longer there than the problem."""
        array = self.hip.empty((size,), "uint8", self.stream, self.device)
        self._kept.append(array)
        self.workspaces.append(size)
        return int(array.array.ctypes.data)

    def forward(self) -> float:
        self.hip.make_current(self.device)
        return self.consumer.forward(self.call)

    def backward(self) -> float:
        self.hip.make_current(self.device)
        return self.consumer.backward(self.call, self.allocate)

    def results(self) -> dict[str, Array]:
        """By name, sequences one after the other: lse in float, all others as bits."""
        self.hip.synchronize(self.stream)
        out = {}
        for name in ("o", "dq", "dk", "dv"):
            rows = self.k if name in ("dk", "dv") else self.q
            actual = self.tensors[name].read()
            actual = actual.reshape(rows.total, *actual.shape[-2:])
            _check_padding(name, actual[~rows.is_used])
            out[name] = np.ascontiguousarray(actual[rows.is_used]).view(np.uint16)
        lse = self.lse.read()
        if not self.layout.group:
            lse = lse.transpose(1, 0, 2).reshape(lse.shape[1], -1)
        _check_padding("lse", lse[:, ~self.q.is_used])
        out["lse"] = lse[:, self.q.is_used].astype(np.float64)
        if "dbias" in self.tensors:
            dbias = self.tensors["dbias"].read().swapaxes(0, 1)
            out["dbias"] = (
                np.ascontiguousarray(dbias)
                .view(np.uint16)
                .reshape(self.case.heads_q, self.case.total_q, -1)
            )
        return out

    def check(self, *names: str) -> None:
        """Results against float64, without names all; dk and dv have a head for each query head."""
        actual = {n: found for n, found in self.results().items() if not names or n in names}
        expected = reference(self.case, self.dtype, self.inputs, actual["o"])
        expected["dq"] = gradients(self.case, self.dtype, expected)["dq"]
        for name, found in actual.items():
            numbers = found if name == "lse" else from_storage(found, self.dtype)
            error = expected[name].error(numbers)
            assert _GATES[name].allows(error.rms, error.largest), f"{name}: {error}"
