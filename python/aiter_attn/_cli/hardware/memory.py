# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Arrays in a GPU's memory, through the HIP runtime that the library has loaded.

No framework is needed. Every array lies between two margins of a known pattern, so that a write
beside it is found, and is NaN until somebody writes it. The package's functions make their results
and workspaces here, too, by the adapter at the end.
"""

from __future__ import annotations

import ctypes
import math
import re
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from aiter_attn import _C
from aiter_attn._core import adapters
from aiter_attn._core.adapters.generic import GenericAdapter

__all__ = ["DeviceArray", "HipError", "Memory", "gpus", "numpy_dtype", "summary"]

_LIBRARY = re.compile(r"^HIP \((.+?)\): ")
_GPU = re.compile(r"\b(\d+) (gfx[0-9a-f]+)")
_TO_DEVICE, _TO_HOST = 1, 2
# A multiple of every alignment that a kernel may ask for; a tile that is written to a wrong place
# is likely to touch it.
_MARGIN = 4096
# Of an input a stray read makes NaN in every dtype; of an output a NaN that is written is seen.
_INPUT_MARGIN, _OUTPUT_MARGIN, _UNWRITTEN = 0xFF, 0xA7, 0xFF
# name -> (DLDataTypeCode, bytes)
_DTYPES = {
    "float16": (2, 2),
    "bfloat16": (4, 2),
    "float32": (2, 4),
    "int32": (0, 4),
    "int64": (0, 8),
    "uint8": (1, 1),
}

# Not pythonapi's: others set argument types there.
_PyCapsule_New = ctypes.PyDLL(None).PyCapsule_New
_PyCapsule_New.restype = ctypes.py_object
_PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class _Managed(ctypes.Structure):
    """DLPack's DLManagedTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class HipError(Exception):
    """A function of the HIP runtime failed."""


def gpus() -> list[tuple[int, str]]:
    """Number and arch of each GPU that HIP finds. Raises DriverError, which says what was looked
    for, where there is none."""
    return [(int(n), arch) for n, arch in _GPU.findall(_C.driver_info(_C.DEVICE_ROCM))]


def numpy_dtype(name: str) -> Any:
    """Raises ImportError for bfloat16 without ml_dtypes."""
    if name != "bfloat16":
        return numpy.dtype(name)
    import ml_dtypes

    return numpy.dtype(ml_dtypes.bfloat16)


class Memory:
    """The memory and the default stream of one GPU. `made` has the arrays that calls of the
    package have asked for, results and workspaces, until somebody clears it."""

    flushed_bytes = 256 << 20  # as large as the last cache of a GPU that there are kernels for

    def __init__(self, device: int) -> None:
        """Raises DriverError where there is no GPU."""
        found = _LIBRARY.match(_C.driver_info(_C.DEVICE_ROCM))
        if not found:
            raise HipError("the library does not say which HIP runtime it has loaded")
        # The same file: the loader gives the library that is loaded already.
        self._library = ctypes.CDLL(found[1])
        self._library.hipGetErrorName.restype = ctypes.c_char_p
        self.runtime = found[1]
        self.device = device
        self.made: list[DeviceArray] = []
        # Fills take time of the GPU: none while that is taken.
        self.fills = True
        self._barrier: DeviceArray | None = None
        self._flushed: DeviceArray | None = None
        self.call("hipSetDevice", ctypes.c_int(device))

    def call(self, function: str, *arguments: Any) -> None:
        """Calls a function of HIP; ints are pointers. Raises HipError."""
        passed = [ctypes.c_void_p(a) if isinstance(a, int) else a for a in arguments]
        code = getattr(self._library, function)(*passed)
        if code:
            self._library.hipGetLastError()
            name = self._library.hipGetErrorName(code)
            raise HipError(f"{function}: {name.decode() if name else 'an error'} ({code})")

    def name(self) -> str:
        text = ctypes.create_string_buffer(256)
        self.call("hipDeviceGetName", text, ctypes.c_int(256), ctypes.c_int(self.device))
        return text.value.decode(errors="replace")

    def bytes_free_and_total(self) -> tuple[int, int]:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("hipMemGetInfo", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def runtime_version(self) -> int:
        version = ctypes.c_int()
        self.call("hipRuntimeGetVersion", ctypes.byref(version))
        return version.value

    def allocate(self, size: int) -> int:
        address = ctypes.c_void_p()
        self.call("hipMalloc", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value or 0

    def free(self, address: int) -> None:
        """Raises nothing: an error was told to whoever waited for the work."""
        self._library.hipFree(ctypes.c_void_p(address))

    def fill(self, address: int, value: int, size: int) -> None:
        if size:
            self.call("hipMemsetAsync", address, ctypes.c_int(value), ctypes.c_size_t(size), None)

    def to_device(self, address: int, data: Any) -> None:
        size = ctypes.c_size_t(data.nbytes)
        self.call("hipMemcpy", address, data.ctypes.data, size, ctypes.c_int(_TO_DEVICE))

    def to_host(self, address: int, size: int) -> Any:
        data = numpy.empty(size, numpy.uint8)
        if size:
            bytes_, kind = ctypes.c_size_t(size), ctypes.c_int(_TO_HOST)
            self.call("hipMemcpy", data.ctypes.data, address, bytes_, kind)
        return data

    def wait(self) -> None:
        """Until all queued work is done. Raises HipError where a kernel failed."""
        self.call("hipDeviceSynchronize")

    def empty(self, shape: Sequence[int], dtype: str) -> DeviceArray:
        """NaN in every dtype of numbers, until it is written."""
        return DeviceArray(self, tuple(shape), dtype, _OUTPUT_MARGIN)

    def array(self, data: Any) -> DeviceArray:
        """A copy of a numpy array."""
        data = numpy.ascontiguousarray(data)
        made = DeviceArray(self, data.shape, data.dtype.name, _INPUT_MARGIN)
        if data.nbytes:
            self.to_device(made.address, data)
        return made

    def barrier(self) -> DeviceArray:
        if self._barrier is None:
            self._barrier = self.array(numpy.zeros(2, numpy.float32))
        return self._barrier

    def flush(self, times: int) -> None:
        """Queues fills that leave nothing in the GPU's caches, and give the host time to queue what
        comes next before the GPU gets there."""
        if self._flushed is None:
            size = min(self.flushed_bytes, self.bytes_free_and_total()[0] // 4)
            self._flushed = self.empty((size,), "uint8")
        for _ in range(times):
            self.fill(self._flushed.address, 0, self._flushed.size)

    def times(self, run: Callable[[], object], count: int, cold: bool) -> list[float]:
        """Milliseconds of each of count runs, by the GPU's events, after one that is not counted.

        cold: whether the GPU's caches are flushed before each, which also hides the time that the
        host takes to queue it.
        """
        self.fills = False
        # Memory that is freed would make the host wait.
        kept = [run()]
        if cold:
            self.flush(1)
        self.wait()
        events = [(self._event(), self._event()) for _ in range(count)]
        try:
            for start, stop in events:
                if cold:
                    self.flush(4)
                self.call("hipEventRecord", start, None)
                kept.append(run())
                self.call("hipEventRecord", stop, None)
            self.wait()
            return [self._elapsed(start, stop) for start, stop in events]
        finally:
            self.fills = True
            for event in (event for pair in events for event in pair):
                self._library.hipEventDestroy(ctypes.c_void_p(event))

    def _event(self) -> int:
        event = ctypes.c_void_p()
        self.call("hipEventCreate", ctypes.byref(event))
        return event.value or 0

    def _elapsed(self, start: int, stop: int) -> float:
        elapsed = ctypes.c_float()
        self.call("hipEventElapsedTime", ctypes.byref(elapsed), start, stop)
        return elapsed.value


def summary(times: Sequence[float]) -> dict[str, Any]:
    """A report's record of times."""
    return {"median": statistics.median(times), "least": min(times), "runs": len(times)}


class DeviceArray:
    """A dense array in a GPU's memory between two margins."""

    def __init__(self, memory: Memory, shape: tuple[int, ...], dtype: str, margin: int) -> None:
        self.memory, self.shape, self.dtype, self._margin = memory, shape, dtype, margin
        code, item = _DTYPES[dtype]
        self.size = math.prod(shape) * item
        self._block = memory.allocate(_MARGIN + self.size + _MARGIN)
        self.address = self._block + _MARGIN
        if memory.fills:
            memory.fill(self._block, margin, _MARGIN)
            memory.fill(self.address, _UNWRITTEN, self.size)
            memory.fill(self.address + self.size, margin, _MARGIN)
        # Every capsule points here: it lives as long as a call that borrows the array.
        self._extents = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        self._managed = _Managed(
            self.address, _C.DEVICE_ROCM, memory.device, len(shape), code, 8 * item, 1,
            self._extents, None, 0, None, None,
        )  # fmt: skip

    def __del__(self) -> None:
        if block := getattr(self, "_block", 0):
            self.memory.free(block)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _C.DEVICE_ROCM, self.memory.device

    def __dlpack__(self, *, stream: Any = None, **newer: Any) -> Any:
        # All work is on the default stream.
        return _PyCapsule_New(ctypes.addressof(self._managed), b"dltensor", None)

    def read(self) -> Any:
        """The content, once all work before is done."""
        raw = self.memory.to_host(self.address, self.size)
        return raw.view(numpy_dtype(self.dtype)).reshape(self.shape)

    def damage(self) -> str:
        """The first byte of the margins that somebody wrote, in words; "": none."""
        for side, start in (("before", self._block), ("behind", self.address + self.size)):
            margin = self.memory.to_host(start, _MARGIN)
            written = numpy.flatnonzero(margin != self._margin)
            if written.size:
                first, last = int(written[0]), int(written[-1])
                if side == "before":
                    first, last = _MARGIN - last, _MARGIN - first
                else:
                    first, last = first + 1, last + 1
                return (
                    f"{written.size} of the {_MARGIN} guard bytes {side} it were written, "
                    f"{first} to {last} bytes from it"
                )
        return ""


class _Adapter(GenericAdapter):
    """These arrays as calls of the package use them."""

    exact = True
    stream_ordered = True  # hipFree waits for the work

    def current_stream(self, array: Any) -> int:
        return 0

    def empty(
        self, name: str, like: Any, shape: Sequence[int], dtype: str | None, stream: int | None
    ) -> Any:
        made = like.memory.empty(shape, dtype or like.dtype)
        like.memory.made.append(made)
        return made

    def full(self, name: str, like: Any, shape: Sequence[int], value: int) -> Any:
        return like.memory.array(numpy.full(tuple(shape), value, numpy.int32))

    def integers(self, name: str, like: Any, numbers: Sequence[int]) -> Any:
        return like.memory.array(numpy.array(numbers, numpy.int32))

    def barrier(self, array: Any, stream: int) -> Any:
        return array.memory.barrier()


adapters.serve(DeviceArray, _Adapter())
