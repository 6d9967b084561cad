# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The C ABI's structs, over arrays on a device."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tests.emulator.hip.hip import DeviceArray, Hip
from tests.hostile import abi

Array = np.ndarray
_FP16 = 1


def new(name: str, **fields: Any) -> Any:
    """A struct of the C ABI."""
    struct = abi.struct(name)
    return struct(struct_size=ctypes.sizeof(struct), **fields)


def call(function: str, args: Any) -> None:
    status = abi.function(function)(ctypes.byref(args))
    assert status == abi.OK, abi.last_error()


class Arrays:
    """Arrays of one call on a device, and its structs."""

    def __init__(self, hip: Hip, arch: str) -> None:
        self.hip, self.device = hip, hip.device_of(arch)
        hip.make_current(self.device)
        self.stream = hip.stream()
        self.kept: list[Any] = []  # the arrays that the structs point to

    def put(self, data: Array) -> DeviceArray:
        array = self.hip.array(np.ascontiguousarray(data), self.stream, self.device)
        self.kept.append(array)
        return array

    def address(self, data: Array) -> int:
        return int(self.put(data).array.ctypes.data)

    def tensor(self, array: DeviceArray) -> Any:
        strides = [stride // array.array.itemsize for stride in array.array.strides[:-1]]
        if len(strides) == 2:
            strides = [0, *strides]
        return abi.struct("attn_tensor")(array.array.ctypes.data, *strides)

    def problem(self, **fields: Any) -> Any:
        made = new("attn_problem", device_type=abi.ROCM, device_id=self.device, stream=self.stream,
                   dtype=_FP16, window_left=-1, window_right=-1, **fields)  # fmt: skip
        self.kept.append(made)
        return made
