# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The caller's arrays: borrowed through DLPack, results made where the caller's own come from.

A framework is what its arrays need beyond DLPack: who allocates a result, and which stream the
caller works on. numpy, torch, cupy and jax have a class here; every other producer of DLPack is
served through the array API standard (`__array_namespace__`), or, without that, as long as the
caller passes the results' arrays. No framework is imported here: an array's own is there already.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

from aiter_attn import _C
from aiter_attn._errors import UnsupportedError

__all__ = [
    "DEFAULT_STREAM",
    "SAME_STREAM",
    "Array",
    "ArrayT",
    "Framework",
    "device_name",
    "framework_of",
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


@runtime_checkable
class Array(Protocol):
    """Anything that exports DLPack: numpy, torch, jax, cupy and more."""

    def __dlpack__(self, *, stream: Any = ...) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, int]: ...


ArrayT = TypeVar("ArrayT", bound=Array)


def device_name(device: tuple[int, int]) -> str:
    """(10, 3) -> "ROCm:3"; the number alone where DLPack's header of this build has no name."""
    kind, index = device
    name = _DEVICES.get(kind, f"DLPack device type {kind}")
    return name if kind == _C.DEVICE_CPU else f"{name}:{index}"


class Framework:
    """What any producer of DLPack can do; the frameworks below know more.

    Methods that get `name` put it, the argument's name, first in every message.
    """

    writable = True  # whether the caller may pass arrays to be written
    # Whether memory that is let go of stays as it is until the GPU work queued on it is done.
    stream_ordered = False

    def device(self, name: str, array: Any) -> tuple[int, int]:
        """(DLDeviceType, ordinal); host memory, pinned or not, is (_C.DEVICE_CPU, 0)."""
        try:
            kind, index = array.__dlpack_device__()
        except (BufferError, RuntimeError, ValueError) as error:
            raise ValueError(f"{name}: {type(array).__name__} refuses DLPack: {error}") from error
        if kind == _C.DEVICE_CPU or kind in _PINNED:
            return _C.DEVICE_CPU, 0
        return int(kind), int(index)

    def current_stream(self, array: Any) -> int | None:
        """The stream that the caller's work on the array's GPU is queued on; None: not known."""
        return None

    def borrow(self, name: str, array: Any, stream: int | None) -> _C.Tensor:
        """The array's memory, ready for work on `stream` (None: host memory).

        Raises TypeError or ValueError where the producer refuses.
        """
        arguments = {} if stream is None else {"stream": stream}
        try:
            try:
                capsule = array.__dlpack__(max_version=(1, 0), **arguments)
            except TypeError:  # a producer from before DLPack 1.0
                capsule = array.__dlpack__(**arguments)
            return _C.Tensor.from_dlpack(capsule)
        except (BufferError, RuntimeError, ValueError) as error:
            raise ValueError(f"{name}: {type(array).__name__} refuses DLPack: {error}") from error
        except (AttributeError, TypeError) as error:
            raise TypeError(f"{name}: {type(array).__name__} refuses DLPack: {error}") from error

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
        except AttributeError as error:
            raise TypeError(
                f"{name}: cannot be made for {type(like).__name__}, which does not follow the "
                f"array API standard ({error}); pass {name}= with shape {tuple(shape)} and dtype "
                f"{dtype or 'as q'}"
            ) from error

    def result(self, array: Any, like: Any) -> Any:
        """The caller's form of an array from empty(), once it is written."""
        return array


class Numpy(Framework):
    """numpy: read through the buffer protocol, as numpy exports no bfloat16 through DLPack."""

    def device(self, name: str, array: Any) -> tuple[int, int]:
        return _C.DEVICE_CPU, 0

    def borrow(self, name: str, array: Any, stream: int | None) -> _C.Tensor:
        numpy = sys.modules["numpy"]
        if isinstance(array, numpy.ma.MaskedArray):
            raise TypeError(f"{name}: a masked array would lose its mask; pass its .data")
        dtype = array.dtype
        if not dtype.isnative:
            raise TypeError(f"{name}: dtype {dtype.str} is not in this machine's byte order")
        try:
            if dtype.name == "bfloat16":
                # The dtype of ml_dtypes has no buffer format; its bits do.
                return _C.Tensor.from_buffer(array.view(numpy.uint16), "bfloat16")
            return _C.Tensor.from_buffer(array, dtype.name)
        except (BufferError, ValueError) as error:
            raise ValueError(f"{name}: {error}") from error

    def empty(
        self, name: str, like: Any, shape: Sequence[int], dtype: str | None, stream: int | None
    ) -> Any:
        numpy = sys.modules["numpy"]
        return numpy.empty(tuple(shape), dtype or like.dtype)


class Torch(Framework):
    """torch: results from its caching allocator, on the current stream of the tensor's device."""

    stream_ordered = True

    def current_stream(self, array: Any) -> int:
        return int(sys.modules["torch"].cuda.current_stream(array.device).cuda_stream)

    def borrow(self, name: str, array: Any, stream: int | None) -> _C.Tensor:
        torch = sys.modules["torch"]
        if array.requires_grad:
            if torch.is_grad_enabled():
                raise UnsupportedError(
                    f"{name}: requires_grad is set, and this version records no autograd graph; "
                    "call under torch.no_grad(), or use mha_fwd and mha_bwd in a "
                    "torch.autograd.Function of your own"
                )
            array = array.detach()
        if stream is None:
            return super().borrow(name, array, stream)
        with torch.cuda.device(array.device):
            return super().borrow(name, array, stream)

    def empty(
        self, name: str, like: Any, shape: Sequence[int], dtype: str | None, stream: int | None
    ) -> Any:
        torch = sys.modules["torch"]
        # The allocator hands memory out again in the order of the stream it was taken on.
        on_stream: AbstractContextManager[Any] = nullcontext()
        if stream is not None:
            on_stream = torch.cuda.stream(torch.cuda.ExternalStream(stream, like.device))
        with on_stream:
            kind = like.dtype if dtype is None else getattr(torch, dtype)
            return torch.empty(tuple(shape), dtype=kind, device=like.device)


class Cupy(Framework):
    """cupy: results from its memory pool, on the current stream of the array's device."""

    stream_ordered = True

    def current_stream(self, array: Any) -> int:
        with array.device:
            return int(sys.modules["cupy"].cuda.get_current_stream().ptr)

    def borrow(self, name: str, array: Any, stream: int | None) -> _C.Tensor:
        with array.device:
            return super().borrow(name, array, stream)

    def empty(
        self, name: str, like: Any, shape: Sequence[int], dtype: str | None, stream: int | None
    ) -> Any:
        cupy = sys.modules["cupy"]
        on_stream: AbstractContextManager[Any] = nullcontext()
        if stream is not None:
            on_stream = cupy.cuda.ExternalStream(stream, like.device.id)
        with like.device, on_stream:
            return cupy.empty(tuple(shape), dtype or like.dtype)


class Jax(Framework):
    """jax, on the CPU: its arrays are immutable, so results are written by numpy and handed over.

    Its GPU arrays live on streams that jax does not tell, so they are refused.
    """

    writable = False

    def device(self, name: str, array: Any) -> tuple[int, int]:
        jax = sys.modules["jax"]
        if isinstance(array, jax.core.Tracer):
            raise UnsupportedError(
                f"{name}: is being traced (jax.jit, jax.grad, ...), which this version does not "
                "take part in; call with concrete arrays"
            )
        device = super().device(name, array)
        if device[0] == _C.DEVICE_ROCM:
            raise UnsupportedError(
                f"{name}: a jax array on {device_name(device)}; of jax, this version takes arrays "
                "on the CPU (jax.device_put(x, jax.devices('cpu')[0]))"
            )
        return device

    def empty(
        self, name: str, like: Any, shape: Sequence[int], dtype: str | None, stream: int | None
    ) -> Any:
        import numpy  # jax has it

        return numpy.empty(tuple(shape), dtype or like.dtype)

    def result(self, array: Any, like: Any) -> Any:
        return sys.modules["jax"].device_put(array, like.device)


_GENERIC: Final = Framework()
# The module and the class in it that a framework's arrays are instances of.
_FRAMEWORKS: Final[tuple[tuple[str, str, Framework], ...]] = (
    ("numpy", "ndarray", Numpy()),
    ("torch", "Tensor", Torch()),
    ("cupy", "ndarray", Cupy()),
    ("jax", "Array", Jax()),
)


def framework_of(name: str, array: Any) -> Framework:
    """Raises TypeError for what is no array."""
    for module, kind, framework in _FRAMEWORKS:
        # An array's own module is imported already.
        cls = getattr(sys.modules.get(module), kind, None)
        if isinstance(cls, type) and isinstance(array, cls):
            return framework
    if isinstance(array, Array):
        return _GENERIC
    raise TypeError(
        f"{name}: {type(array).__name__} is no array; allowed: numpy, torch, jax and cupy arrays, "
        "and whatever exports DLPack (__dlpack__, __dlpack_device__)"
    )
