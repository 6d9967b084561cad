# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The library that a project builds of cmake/on_device.c, on a device, against float64."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np

from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, Case
from tests.emulation.harness.reference import draw, from_storage, gradients, reference
from tests.emulation.verify.verdict import GATES, Gate
from tests.emulator.hip.hip import Hip

_SIZE = 64
_CASE = Case("", ((33, 47),) * 2, 2, 2, mask=MASK_BOTTOM_RIGHT, window=(-1, 0))
_GATES = {name: GATES["o"] for name in ("o", "dq", "dk", "dv")} | {"lse": Gate(2.0, 8.0)}
_NAMES = ("q", "k", "v", "o", "dout", "dq", "dk", "dv", "lse")
_ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)


class _Arrays(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in _NAMES]


def check(path: Path, hip: Hip, arch: str) -> None:
    """Forward and backward by the library at `path`. Raises AssertionError."""
    library = ctypes.CDLL(str(path))
    device = hip.device_of(arch)
    hip.make_current(device)
    stream = hip.stream()
    inputs = draw(_CASE, "fp16", (_SIZE, _SIZE), seed=3, backward=True)
    (rows_q, rows_k), batch = _CASE.lengths[0], len(_CASE.lengths)

    def put(values: Any) -> Any:
        return hip.array(values, stream, device)

    def split(tokens: Any) -> Any:
        return put(tokens.view(np.float16).reshape(batch, -1, *tokens.shape[1:]))

    tensors = {name: split(getattr(inputs, name)) for name in ("q", "k", "v", "dout")}
    for name, rows in (("o", rows_q), ("dq", rows_q), ("dk", rows_k), ("dv", rows_k)):
        tensors[name] = put(np.full((batch, rows, _CASE.heads_q, _SIZE), 7, np.float16))
    tensors["lse"] = put(np.full((batch, _CASE.heads_q, rows_q), 7, np.float32))
    memory = []

    def allocate(size: int) -> int:
        memory.append(hip.empty((size,), "uint8", stream, device))
        return int(memory[-1].array.ctypes.data)

    arrays = _Arrays(*(tensors[name].array.ctypes.data for name in _NAMES))
    status = library.attend(
        ctypes.byref(arrays), batch, _CASE.heads_q, rows_q, rows_k, _SIZE,
        ctypes.c_float(inputs.scale), _ALLOCATE(allocate), ctypes.c_void_p(stream),
    )  # fmt: skip
    assert status == 0
    hip.synchronize(stream)

    actual = {name: tensors[name].read() for name in _GATES}
    stored = {
        name: np.ascontiguousarray(x).reshape(-1, *x.shape[2:]).view(np.uint16)
        for name, x in actual.items()
        if name != "lse"
    }
    expected = reference(_CASE, "fp16", inputs, stored["o"])
    expected |= gradients(_CASE, "fp16", expected)
    numbers = {name: from_storage(bits, "fp16") for name, bits in stored.items()}
    lse = actual["lse"].transpose(1, 0, 2).reshape(_CASE.heads_q, -1)
    numbers["lse"] = lse.astype(np.float64)
    for name, found in numbers.items():
        error = expected[name].error(found)
        assert _GATES[name].allows(error.rms, error.largest), f"{name}: {error}"
