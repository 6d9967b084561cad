# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Calls of fp8 through a wheel's C ABI on device arrays, against float64.

Beside each number stands the error that rounding makes there: of the probabilities, which kernels
hold as fp8 by a scale that uses all of its range, and of o. An error of a right kernel is below
that in root mean square, and nowhere four times as much. o is fp8, bf16 or fp32.
"""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

from tests.emulation.verify.verdict import GATES
from tests.emulation.wheel.c_abi import new
from tests.emulation.wheel.problems import NO_WINDOW
from tests.emulator.hip.hip import Hip
from tests.hostile import abi
from tests.support.python.attention import probabilities, seen

Array = np.ndarray

BATCH, HEADS_Q, HEADS_K, HEAD_SIZE = 2, 4, 2, 64
SCALE = 0.125
DESCALES, SCALE_O = (0.5, 2.0, 0.25), 40.0
NO_BIAS, ELEMENTWISE = range(2)
NO_MASK, BOTTOM_RIGHT = 0, 2
WINDOW = (40, 9)
UNIT = 2.0**-4  # half a unit in the last place of E4M3
# o's numpy dtype, half a unit in its last place, attn_dtype; by its name here.
WIDER = {"bf16": (ml_dtypes.bfloat16, 2.0**-8, 2), "fp32": (np.float32, 2.0**-24, 3)}

# (attn_dtype, numpy's dtype, the largest number, the least normal one) of an arch's kernels.
FORMATS = {
    "gfx942": (6, ml_dtypes.float8_e4m3fnuz, 240.0, 2.0**-7),
    "gfx950": (4, ml_dtypes.float8_e4m3fn, 448.0, 2.0**-6),
}


class Call:
    """Arrays on a device, and the args of a call.

    o is the name of its dtype, fp8 or one of WIDER. sequences: (queries, keys) of each, in group
    mode; lengths are the greatest ones then. head_size: HEAD_SIZE, with an o of fp32 128, if none
    is given.
    """

    def __init__(
        self, hip: Hip, arch: str, lengths: tuple[int, int], window: tuple[int, int], bias: int,
        amplitude: float = 1.0, o: str = "fp8", sequences: tuple[tuple[int, int], ...] = (),
        head_size: int | None = None,
    ) -> None:  # fmt: skip
        self.hip, self.device = hip, hip.device_of(arch)
        hip.make_current(self.device)
        self.stream = hip.stream()
        self.number, self.dtype, self.largest, self.least = FORMATS[arch]
        self.o_dtype, self.o_unit, o_number = WIDER.get(o, (self.dtype, UNIT, 0))
        self.is_wider = o in WIDER
        size = head_size or (128 if o == "fp32" else HEAD_SIZE)  # upstream has that one alone
        self.window, self.sequences = window, sequences
        batch, (queries, keys) = BATCH, lengths
        starts = [np.cumsum([0, *(pair[i] for pair in sequences)]) for i in range(2)]
        if sequences:
            batch, queries, keys = 1, int(starts[0][-1]), int(starts[1][-1])
        self.kept: list[Any] = []  # the arrays that the args point to
        rng = np.random.default_rng(queries + keys + bias)

        def numbers(*shape: int) -> Array:
            return (amplitude * rng.standard_normal(shape)).astype(self.dtype)

        self.q = numbers(batch, queries, HEADS_Q, size)
        self.k = numbers(batch, keys, HEADS_K, size)
        # By columns, or by rows.
        shape = (keys, HEADS_K, size) if self.is_wider else (size, HEADS_K, keys)
        self.v = numbers(batch, *shape)
        self.o = self.put(np.full(self.q.shape, -1, self.o_dtype).view(np.uint8))
        of_group: dict[str, Any] = {}
        if sequences:
            cu_q, cu_k = (self.put(x.astype(np.int32)).array.ctypes.data for x in starts)
            of_group = {"total_q": queries, "total_k": keys, "cu_seqlens_q": cu_q,
                        "cu_seqlens_k": cu_k}  # fmt: skip
        self.problem = new(
            "attn_problem", mode=abi.GROUP if sequences else abi.BATCH, device_type=abi.ROCM,
            device_id=self.device, stream=self.stream, dtype=self.number,
            batch=len(sequences) or batch, heads_q=HEADS_Q, heads_k=HEADS_K,
            head_size_qk=size, head_size_v=size, seqlen_q=lengths[0], seqlen_k=lengths[1],
            softmax_scale=SCALE, mask=NO_MASK if window == NO_WINDOW else BOTTOM_RIGHT,
            window_left=window[0], window_right=window[1], bias=bias, **of_group,
        )  # fmt: skip
        strides = self.q.strides[:-1]  # elements, as those of o
        self.args = new(
            "attn_fwd_args", problem=ctypes.addressof(self.problem),
            v_layout=0 if self.is_wider else 1, o_dtype=o_number,
            **{name: self.tensor(self.put(getattr(self, name).view(np.uint8))) for name in "qkv"},
            o=abi.struct("attn_tensor")(self.o.array.ctypes.data, *strides),
            **dict(zip(("descale_q", "descale_k", "descale_v"), DESCALES, strict=True)),
            scale_o=0.0 if self.is_wider else SCALE_O,
        )  # fmt: skip
        if bias == ELEMENTWISE:
            self.bias = rng.standard_normal((HEADS_Q, queries, keys)).astype(np.float32)
            rows = self.put(self.bias)
            stride = queries * keys
            where = rows.array.ctypes.data
            self.args.bias = abi.struct("attn_tensor")(where, 0, keys, stride)

    def put(self, data: Array) -> Any:
        self.kept.append(self.hip.array(np.ascontiguousarray(data), self.stream, self.device))
        return self.kept[-1]

    def tensor(self, array: Any) -> Any:
        return abi.struct("attn_tensor")(array.array.ctypes.data, *array.array.strides[:-1])

    def run(self) -> Array:
        status = abi.function("fwd")(ctypes.byref(self.args))
        assert status == abi.OK, abi.last_error()
        self.hip.synchronize(self.stream)
        return self.o.read().view(self.o_dtype).astype(np.float64)

    def expected(self) -> tuple[Array, Array]:
        """o as it is stored, but for its rounding, and the error that rounding makes."""
        if not self.sequences:
            return self._expected(self.q, self.k, self.v)
        value, unit = np.zeros((2, *self.q.shape))
        row = key = 0
        for queries, keys in self.sequences:
            rows, columns = slice(row, row + queries), slice(key, key + keys)
            value[:, rows], unit[:, rows] = self._expected(
                self.q[:, rows], self.k[:, columns], self.v[:, columns]
            )
            row, key = row + queries, key + keys
        return value, unit

    def _expected(self, q: Array, k: Array, v: Array) -> tuple[Array, Array]:
        group, scale = HEADS_Q // HEADS_K, 1.0 if self.is_wider else SCALE_O
        q, k, v = (x.astype(np.float64) * by for x, by in zip((q, k, v), DESCALES, strict=True))
        if self.is_wider:
            v = v.transpose(0, 3, 2, 1)
        k, v = np.repeat(k, group, axis=2), np.repeat(v, group, axis=2)
        scores = SCALE * np.einsum("bihd,bjhd->bhij", q, k)
        if self.problem.bias == ELEMENTWISE:
            scores += self.bias
        if self.problem.mask != NO_MASK:
            queries, keys = scores.shape[2:]
            visible = seen(queries, keys, self.window)
            scores = np.where(visible, scores, -np.inf)
        p, _, total, _ = probabilities(scores)
        total = np.where(total == 0, 1.0, total)
        o = scale * np.einsum("bhij,bdhj->bihd", p, v)
        rounding = UNIT * np.maximum(p, (p > 0) * self.least / self.largest / total)
        error = scale * np.sqrt(np.einsum("bhij,bdhj->bihd", rounding**2, v**2))
        least = 0.0 if self.is_wider else self.least
        # A row without a key is 0.
        unit = np.hypot(error, self.o_unit * np.maximum(np.abs(o), least))
        return o, np.maximum(unit, np.finfo(np.float32).tiny)


def check(call: Call) -> None:
    """A call's o against float64."""
    actual = call.run()
    value, unit = call.expected()
    assert call.is_wider or np.abs(value).max() < call.largest
    error = np.abs(actual - value) / unit
    gate = GATES["o"]
    assert np.sqrt((error**2).mean()) < gate.rms, np.sqrt((error**2).mean())
    assert error.max() < gate.largest, error.max()
