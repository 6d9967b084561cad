# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A framework as calls use it: its arrays are borrowed and made by it, on its stream.

GenericAdapter serves every producer of DLPack. Results are made through the array API standard
(`__array_namespace__`); without that the caller of attention passes the results' arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from aiter_attn import _C
from aiter_attn._core import reading

__all__ = [
    "DEFAULT_STREAM",
    "SAME_STREAM",
    "GenericAdapter",
    "check_contiguous",
    "check_rows",
    "device_name",
    "dlpack_stream",
]

# DLPack's DLDeviceType, for messages.
_DEVICES: Final = {
    1: "CPU",
    2: "CUDA",
    4: "OpenCL",
    7: "Vulkan",
    8: "Metal",
    10: "ROCm",
    12: "extension device",
    13: "CUDA managed memory",
    14: "oneAPI",
    15: "WebGPU",
    16: "Hexagon",
    17: "MAIA",
}
# Host memory that a GPU runtime has pinned is host memory still.
_PINNED: Final = (3, 11)
# DLPack's stream values: the default stream of ROCm, and "do not synchronise".
DEFAULT_STREAM: Final = 0
SAME_STREAM: Final = -1


def device_name(device: tuple[int, int]) -> str:
    """(10, 3) -> "ROCm:3"; the number alone where DLPack's header of this build has no name."""
    kind, index = device
    name = _DEVICES.get(kind, f"DLPack device type {kind}")
    return name if kind == _C.DEVICE_CPU else f"{name}:{index}"


def check_rows(name: str, tensor: _C.Tensor) -> None:
    """Raises ValueError where the last dimension has another stride than 1."""
    if not tensor.is_contiguous(1):
        raise ValueError(
            f"{name}: strides {tensor.strides} (in elements); the last must be 1: pass a copy "
            "whose last dimension is contiguous"
        )


def check_contiguous(name: str, tensor: _C.Tensor) -> None:
    """Raises ValueError where any dimension is strided."""
    if not tensor.is_contiguous(len(tensor.shape)):
        raise ValueError(
            f"{name}: strides {tensor.strides} (in elements) of shape {tensor.shape}; it must "
            "be contiguous: pass a contiguous copy"
        )


def _location(kind: int, index: int) -> tuple[int, int]:
    """Host memory, pinned or not, is one place."""
    return (_C.DEVICE_CPU, 0) if kind == _C.DEVICE_CPU or kind in _PINNED else (kind, index)


def dlpack_stream(kind: int, stream: int) -> int:
    """DLPack's number of a stream: CUDA's default stream, 0, is 1 there."""
    return 1 if kind == _C.DEVICE_CUDA and stream == 0 else stream


class GenericAdapter:
    """Methods that get `name` put it, the argument's name, first in every message."""

    writable = True  # whether the caller may pass arrays to be written
    # Whether empty() is known to make exactly the array that it is asked for, so that no check is
    # needed.
    exact = False
    # Whether result() is something else than the array.
    hands_over = False
    # Whether memory that is let go of stays as it is until the GPU work queued on it is done.
    stream_ordered = False

    def __init__(self, module: Any = None) -> None:
        """module: the framework's own."""
        self.module = module

    def device(self, name: str, array: Any) -> tuple[int, int]:
        """(DLDeviceType, ordinal); host memory, pinned or not, is (_C.DEVICE_CPU, 0)."""
        try:
            told = array.__dlpack_device__()
        except (BufferError, RuntimeError, ValueError) as error:
            raise ValueError(f"{name}: {type(array).__name__} refuses DLPack: {error}") from error
        except (AttributeError, TypeError) as error:
            raise TypeError(f"{name}: {type(array).__name__} refuses DLPack: {error}") from error
        kind, index = reading.pair(
            f"{name}: {type(array).__name__}.__dlpack_device__()",
            told,
            "two integers (device type, device id)",
        )
        return _location(kind, index)

    def current_stream(self, array: Any) -> int | None:
        """The stream that the caller's work on the array's GPU is queued on; None: not known."""
        return None

    def borrow(
        self, name: str, array: Any, device: tuple[int, int], stream: int | None
    ) -> _C.Tensor:
        """The array's memory, ready for work on `stream` (None: host memory).

        device: what device() told. Raises TypeError or ValueError where the producer refuses, or
        exports something that is no array or is elsewhere.
        """
        arguments = {} if stream is None else {"stream": stream}
        try:
            try:
                capsule = array.__dlpack__(max_version=(1, 0), **arguments)
            except TypeError:  # a producer from before DLPack 1.0
                capsule = array.__dlpack__(**arguments)
        except (BufferError, RuntimeError, ValueError) as error:
            raise ValueError(f"{name}: {type(array).__name__} refuses DLPack: {error}") from error
        except (AttributeError, TypeError) as error:
            raise TypeError(f"{name}: {type(array).__name__} refuses DLPack: {error}") from error
        try:
            tensor = _C.Tensor.from_dlpack(capsule)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: {type(array).__name__}.__dlpack__(): {error}") from error
        exported = _location(*tensor.device)
        if exported != device:
            raise ValueError(
                f"{name}: {type(array).__name__} is on {device_name(device)} by "
                f"__dlpack_device__(), but on {device_name(exported)} by its DLPack capsule; both "
                "must tell where its memory is"
            )
        return tensor

    def empty(
        self, name: str, like: Any, shape: Sequence[int], dtype: str | None, stream: int | None
    ) -> Any:
        """An uninitialised, contiguous, writable array on like's device.

        dtype is None for like's own, stream is None for the stream that the caller works on.
        Raises TypeError where the framework has no way to make one.
        """
        try:
            namespace = like.__array_namespace__()
            kind = like.dtype if dtype is None else getattr(namespace, dtype)
            return namespace.empty(tuple(shape), dtype=kind, device=like.device)
        except (AttributeError, TypeError) as error:
            raise TypeError(
                f"{name}: cannot be made for {type(like).__name__}, which does not follow the "
                f"array API standard ({error})"
            ) from error

    def full(self, name: str, like: Any, shape: Sequence[int], value: int) -> Any:
        """An int32 array of one number on like's device. Raises TypeError as empty() does."""
        try:
            namespace = like.__array_namespace__()
            return namespace.full(tuple(shape), value, dtype=namespace.int32, device=like.device)
        except (AttributeError, TypeError) as error:
            raise TypeError(
                f"{name}: an array of {value} cannot be made for {type(like).__name__}, which does "
                f"not follow the array API standard ({error}); pass an int32 array"
            ) from error

    def integers(self, name: str, like: Any, numbers: Sequence[int]) -> Any:
        """An int32 array of the numbers on like's device. Raises TypeError as empty() does."""
        try:
            namespace = like.__array_namespace__()
            return namespace.asarray(numbers, dtype=namespace.int32, device=like.device)
        except (AttributeError, TypeError) as error:
            raise TypeError(
                f"{name}: an array of numbers cannot be made for {type(like).__name__}, which does "
                f"not follow the array API standard ({error}); pass numpy, torch or jax arrays"
            ) from error

    def copy(self, name: str, array: Any) -> Any:
        """A writable array with the same numbers. Raises TypeError as empty() does."""
        try:
            return array.__array_namespace__().asarray(array, copy=True)
        except (AttributeError, TypeError) as error:
            raise TypeError(
                f"{name}: {type(array).__name__} cannot be copied, as it does not follow the array "
                f"API standard ({error}); pass numpy, torch, cupy or jax arrays"
            ) from error

    def plus(self, name: str, array: Any, number: int) -> Any:
        """An array of the numbers, each greater by `number`. Raises TypeError where there is no +
        of such arrays."""
        try:
            return array + number
        except TypeError as error:
            raise TypeError(
                f"{name}: {type(array).__name__} has no + for the lengths after appending "
                f"({error}); pass an int, or a numpy, torch, cupy or jax array"
            ) from error

    def check_made(
        self, name: str, like: Any, made: _C.Tensor, shape: tuple[int, ...], dtype: str
    ) -> None:
        """Raises TypeError where empty() made something else than it was asked for."""
        if made.fits(shape, dtype, len(shape), written=True):
            return
        access = "read-only, " if made.read_only else ""
        raise TypeError(
            f"{name}: {type(like).__name__}'s namespace made it {access}with shape {made.shape}, "
            f"dtype {made.dtype} and strides {made.strides}, where a C-contiguous, writable array "
            f"of shape {shape} and dtype {dtype} was asked for"
        )

    def result(self, array: Any, like: Any) -> Any:
        """The caller's form of an array from empty(), once it is written."""
        return array

    def barrier(self, array: Any, stream: int) -> Any:
        """Zeroed memory on the array's device for work on `stream`, the same at each call; None
        where the framework has none to keep.
        """
        return None

    def seen_as(self, name: str, array: Any, dtype: str) -> Any:
        """A uint8 array of empty() as one of an fp8 dtype. Raises TypeError where there is none."""
        raise TypeError(
            f"{name}: {type(array).__name__} has no {dtype}; pass torch or numpy arrays"
        )
