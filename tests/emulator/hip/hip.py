# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A user's HIP in Python: calls, streams, and device arrays that export DLPack.

It knows nothing of the emulator: any libamdhip64 serves.
"""

from __future__ import annotations

import ctypes
import math
import types
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.support.python.dlpack_exporter import KDL_ROCM, Exporter

TO_DEVICE, TO_HOST = 1, 2
NON_BLOCKING = 1
_ARCH_NAME = 1160  # of hipDeviceProp_tR0600
_END, _BUFFER_POINTER, _BUFFER_SIZE = 3, 1, 2
DTYPES = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "int32": np.dtype(np.int32),
    "int64": np.dtype(np.int64),
    "uint8": np.dtype(np.uint8),
    "float8_e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "float8_e4m3fnuz": np.dtype(ml_dtypes.float8_e4m3fnuz),
}


class HipError(Exception):
    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{call}: {name} ({code})")
        self.code = code


class Hip:
    """A HIP runtime. Pointers and handles are ints."""

    def __init__(self, path: str) -> None:
        self.library = ctypes.CDLL(path)
        self.library.hipGetErrorName.restype = ctypes.c_char_p

    def __call__(self, function: str, *arguments: Any) -> None:
        """Calls a function; ints count as pointers. Raises HipError."""
        passed = [ctypes.c_void_p(a) if isinstance(a, int) else a for a in arguments]
        code = getattr(self.library, function)(*passed)
        if code:
            self.library.hipGetLastError()
            raise HipError(function, code, self.library.hipGetErrorName(code).decode())

    def made(self, function: str, *arguments: Any) -> int:
        """Calls a function that gives a pointer or handle through its first argument."""
        out = ctypes.c_void_p()
        self(function, ctypes.byref(out), *arguments)
        return out.value or 0

    def device_count(self) -> int:
        count = ctypes.c_int()
        self("hipGetDeviceCount", ctypes.byref(count))
        return count.value

    def device_of(self, arch: str) -> int:
        """The first device of an arch; skips the test where there is none."""
        for device in range(self.device_count()):
            properties = ctypes.create_string_buffer(4096)
            self("hipGetDevicePropertiesR0600", properties, ctypes.c_int(device))
            name = ctypes.string_at(ctypes.addressof(properties) + _ARCH_NAME)
            if name.decode().split(":")[0] == arch:
                return device
        pytest.skip(f"no {arch} here")

    def make_current(self, device: int) -> None:
        self("hipSetDevice", device)

    def stream(self, flags: int = 0) -> int:
        return self.made("hipStreamCreateWithFlags", flags)

    def synchronize(self, stream: int | None = None) -> None:
        """Waits for a stream, or for the current device."""
        if stream is None:
            self("hipDeviceSynchronize")
        else:
            self("hipStreamSynchronize", stream)

    def copy(self, to: int, source: int, size: int, kind: int, stream: int) -> None:
        """Queues a copy from one address to another; kind: which of them are on a device."""
        self("hipMemcpyAsync", to, source, size, kind, stream)

    def free(self, address: int) -> None:
        """Raises nothing: an error was told to whoever waited for the work."""
        self.library.hipFree(ctypes.c_void_p(address))

    def order(self, first: int, then: int) -> None:
        """Work on stream `first` now comes before later work on `then`."""
        event = self.made("hipEventCreateWithFlags", 0)
        self("hipEventRecord", event, first)
        self("hipStreamWaitEvent", then, event, 0)
        self("hipEventDestroy", event)

    def launch(
        self, function: int, grid: Sequence[int], block: Sequence[int], kernarg: bytes, stream: int
    ) -> None:
        buffer = ctypes.create_string_buffer(kernarg, len(kernarg))
        size = ctypes.c_size_t(len(kernarg))
        extra = (ctypes.c_void_p * 5)(
            _BUFFER_POINTER, ctypes.addressof(buffer), _BUFFER_SIZE, ctypes.addressof(size), _END
        )
        self("hipModuleLaunchKernel", function, *grid, *block, 0, stream, 0, extra)

    def array(self, data: np.ndarray[Any, Any], stream: int = 0, device: int = 0) -> DeviceArray:
        """A copy in a device's memory, queued on a stream."""
        out = self.empty(data.shape, data.dtype.name, stream, device)
        out.write(data)
        return out

    def empty(
        self, shape: Sequence[int], dtype: str, stream: int = 0, device: int = 0
    ) -> DeviceArray:
        """Uninitialised memory of a device, for use on a stream."""
        self.make_current(device)
        block = Allocation(self, math.prod(shape) * DTYPES[dtype].itemsize)
        return DeviceArray(block, tuple(shape), dtype, stream, device)


class Allocation:
    """Memory from hipMalloc, freed with its last reference."""

    def __init__(self, hip: Hip, size: int) -> None:
        self.hip, self.size = hip, size
        self.address = hip.made("hipMalloc", size)

    def __del__(self) -> None:
        self.hip.free(getattr(self, "address", 0))


class DeviceArray(Exporter):
    """An array in a device's memory. `array` has its address, shape and strides, and is never read.

    Work that wrote it is on `stream`; a consumer on another stream is ordered behind it, as DLPack
    wants. It follows the array API standard as far as making arrays like it goes.
    """

    def __init__(
        self, block: Allocation, shape: tuple[int, ...], dtype: str, stream: int, device: int
    ) -> None:
        raw = (ctypes.c_uint8 * block.size).from_address(block.address)
        view = np.frombuffer(raw, np.uint8).view(_plain(dtype)).reshape(shape)
        super().__init__(view, device=(KDL_ROCM, device), dtype=dtype)
        self.block, self.stream, self.device, self.dtype = block, stream, device, dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def write(self, data: np.ndarray[Any, Any]) -> None:
        assert data.shape == self.array.shape and self.array.flags.c_contiguous
        data = np.ascontiguousarray(data)
        if data.nbytes:
            here, there = data.ctypes.data, self.array.ctypes.data
            self.block.hip.copy(there, here, data.nbytes, TO_DEVICE, self.stream)

    def read(self) -> np.ndarray[Any, Any]:
        """The content, once its stream has got there."""
        whole = np.empty(self.block.size, np.uint8)
        if self.block.size:
            here, there = whole.ctypes.data, self.block.address
            self.block.hip.copy(here, there, whole.nbytes, TO_HOST, self.stream)
            self.block.hip.synchronize(self.stream)
        offset = self.array.ctypes.data - self.block.address if self.array.size else 0
        part = np.ndarray(
            self.array.shape, DTYPES[self.dtype], whole.data, offset, self.array.strides
        )
        return part.copy()

    def __getitem__(self, key: Any) -> DeviceArray:
        return self._view(self.array[key])

    def transpose(self, *axes: int) -> DeviceArray:
        return self._view(self.array.transpose(axes))

    def _view(self, array: np.ndarray[Any, Any]) -> DeviceArray:
        part = DeviceArray.__new__(DeviceArray)
        part.__dict__.update(self.__dict__)
        part.array = array
        return part

    def __dlpack__(self, *, stream: int | None = None, **newer: Any) -> Any:
        if stream not in (None, -1, self.stream):
            self.block.hip.order(self.stream, stream)
        return super().__dlpack__(stream=stream, **newer)

    def __array_namespace__(self) -> Any:
        def empty(shape: tuple[int, ...], *, dtype: str, device: int) -> DeviceArray:
            return self.block.hip.empty(shape, dtype, self.stream, device)

        return types.SimpleNamespace(empty=empty, **{name: name for name in DTYPES})


def _plain(dtype: str) -> np.dtype[Any]:
    return np.dtype(np.uint16) if dtype == "bfloat16" else DTYPES[dtype]
