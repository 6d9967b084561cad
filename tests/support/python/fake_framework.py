# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Frameworks that are not installed here, whose arrays are on a GPU."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any, ClassVar, Final

import numpy

from tests.support.python.dlpack_exporter import Exporter


class Device:
    """A context manager with the ordinal, as torch.cuda.device and cupy.cuda.Device are."""

    entered: ClassVar[list[int]] = []  # the current device is the last

    def __init__(self, ordinal: int) -> None:
        self.id = ordinal

    def __enter__(self) -> None:
        self.entered.append(self.id)

    def __exit__(self, *_: object) -> None:
        self.entered.pop()


DEVICES: Final = (Device(0), Device(1))


def current_device() -> int:
    return (Device.entered or [0])[-1]


class Fake(Exporter):
    """An array of a framework that is not installed here."""

    requires_grad = False
    framework: FakeFramework

    def __init__(self, array: Any, kind: int, made_on: int | None, ordinal: int) -> None:
        super().__init__(array, device=(kind, ordinal))
        self.made_on = made_on
        self.device = DEVICES[ordinal]
        self.dtype = array.dtype

    def is_neg(self) -> bool:
        return False

    def get_device(self) -> int:
        return self.device.id

    def __getitem__(self, part: slice) -> Fake:
        return self.framework.make(self.array[part], self.made_on, self.device.id)

    def new_empty(self, shape: tuple[int, ...], dtype: Any = None) -> Fake:
        return self.framework.empty(shape, dtype, self.device)


class FakeFramework(types.ModuleType):
    """torch and cupy, as far as results and streams go. Arrays are host memory that is exported as
    that of a GPU of a kind, a DLDeviceType."""

    current = 0xC0FFEE  # the stream of the first device; that of the next is the next

    def __init__(self, name: str, kind: int) -> None:
        super().__init__(name)
        self.kind = kind
        self.capturing: set[int] = set()  # the devices whose current stream is being captured
        self.stream_of_allocations: int | None = None
        self.ndarray = self.Tensor = type("Fake" + name, (Fake,), {"framework": self})
        self.float16, self.float32, self.uint8 = "float16", "float32", "uint8"
        self.int32 = "int32"
        self.cuda = self
        # torch.utils.dlpack.to_dlpack, which waits for nothing
        self.utils = self.dlpack = self
        # torch's private ones
        self._C = types.SimpleNamespace(_cuda_getCurrentRawStream=self._raw_stream)

    def to_dlpack(self, array: Fake) -> Any:
        return array.__dlpack__(stream=-1)

    def is_grad_enabled(self) -> bool:
        return True

    def current_device(self) -> int:
        return current_device()

    def _raw_stream(self, ordinal: int) -> int:
        return self.current + ordinal

    def current_stream(self, device: Device | int) -> Any:
        ordinal = device if isinstance(device, int) else device.id
        return types.SimpleNamespace(
            cuda_stream=self._raw_stream(ordinal), synchronize=lambda: None
        )

    def get_current_stream(self) -> Any:
        return types.SimpleNamespace(ptr=self.current)

    def device(self, device: Device | int) -> Device:
        return DEVICES[device] if isinstance(device, int) else device

    def ExternalStream(self, stream: int, device: object) -> Any:
        return self.stream(stream)

    @contextlib.contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        if not isinstance(stream, int):  # torch.cuda.stream(ExternalStream(...))
            with stream:
                yield
            return
        self.stream_of_allocations = stream
        yield
        self.stream_of_allocations = None

    def is_current_stream_capturing(self) -> bool:
        return current_device() in self.capturing

    def zeros(self, count: int, dtype: Any, device: Any) -> Fake:
        return self.make(numpy.zeros(count, dtype), ordinal=device.id)

    def empty(self, shape: tuple[int, ...], dtype: Any = None, device: Any = None) -> Fake:
        # torch is told the device, cupy takes the current one.
        ordinal = device.id if device else current_device()
        return self.make(numpy.zeros(shape, dtype), self.stream_of_allocations, ordinal)

    def full(
        self, shape: tuple[int, ...], value: int, dtype: Any = None, device: Any = None
    ) -> Fake:
        made = self.empty(shape, dtype, device)
        made.array[...] = value
        return made

    def make(self, array: Any, made_on: int | None = None, ordinal: int = 0) -> Fake:
        made: Fake = self.ndarray(array, self.kind, made_on, ordinal)
        return made
