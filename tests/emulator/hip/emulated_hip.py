# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The emulator behind the HIP runtime of this folder.

    runtime = emulated_hip.attach(library)       # a ctypes.CDLL of libamdhip64.so.6 of this folder
    ...                                          # any code of this process that uses that library
    runtime.raise_failures()                     # what the emulator found

Launches run with all of the emulator's checks. A finding makes the device fail as a fault of the
GPU does: waiting for it, and every later call on it, returns an error, until `recover`.
"""

from __future__ import annotations

import ctypes
import dataclasses
import itertools
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from gfxemu import Checks, Device, EmulationError, LlvmMc, Report, code_object
from gfxemu.checks import POISONS
from gfxemu.errors import MemoryFault
from gfxemu.memory import Buffer

from tests.emulator.hip.queues import Streams, Work

INVALID_VALUE, OUT_OF_MEMORY, INVALID_IMAGE, NO_BINARY_FOR_GPU = 1, 2, 200, 209
INVALID_HANDLE, NOT_FOUND, NOT_READY = 400, 500, 600
ILLEGAL_ADDRESS, LAUNCH_FAILURE, UNKNOWN = 700, 719, 999
_HOST_TO_HOST, _TO_DEVICE, _TO_HOST, _ON_DEVICE, _BY_ADDRESS = range(5)


class EmulatedDeviceError(Exception):
    """Kernels did what they must not: every finding and fault since the last look."""


class _HipError(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclasses.dataclass(frozen=True)
class Launch:
    """One launch that was executed. `report` is None where an error stopped it."""

    device: int
    symbol: str
    grid: tuple[int, int, int]
    stream: int
    report: Report | None


@dataclasses.dataclass
class _Module:
    device: int
    code: bytes
    parsed: code_object.CodeObject
    image: int | None = None  # its address, once somebody has asked for a variable


@dataclasses.dataclass
class _Event:
    device: int
    work: Work | None = None
    time: float | None = None


class _EmulatedDevice:
    def __init__(self, arch: str) -> None:
        self.emulator = Device(arch, LlvmMc.from_environment())
        self.streams = Streams()
        self.error = 0

    def check(self) -> None:
        if self.error:
            raise _HipError(self.error)


class Runtime:
    """Devices, their memory and their queues; `attach` makes the one that a library calls."""

    def __init__(
        self,
        arch_of: Callable[[int], str],
        known: Callable[[str], Collection[str]],
        takes_turns: Callable[[str], bool],
    ) -> None:
        self._arch_of, self._known, self._takes_turns = arch_of, known, takes_turns
        self._lock = threading.RLock()
        self._devices: dict[int, _EmulatedDevice] = {}
        self._modules: dict[int, _Module] = {}
        self._functions: dict[int, tuple[int, str]] = {}
        self._events: dict[int, _Event] = {}
        self._numbers = itertools.count(0x1000, 0x10)
        self._busy = False
        self._garbage: list[tuple[Any, ...]] = []
        self.schedule = "sliced:8"
        self.checks = Checks()
        self.launches: list[Launch] = []
        self.failures: list[str] = []

    def raise_failures(self) -> None:
        """Raises EmulatedDeviceError for findings since the last call, and forgets them."""
        with self._lock:
            failures, self.failures = self.failures, []
        if failures:
            raise EmulatedDeviceError("\n".join(failures))

    def recover(self) -> None:
        """Makes failed devices usable again: queued work is dropped, memory and modules stay."""
        with self._lock:
            for device in self._devices.values():
                if device.error:
                    device.streams.wait_all()  # nothing is executed on a failed device
                    device.error = 0

    # The functions that the library calls (backend.h); each returns nothing, or raises _HipError.

    def allocate(self, device: int, address: int, size: int) -> None:
        data, written = np.empty(size, np.uint8), np.zeros(size, bool)
        memory = self._device(device).emulator.memory
        memory.register(data, f"allocation {len(memory.buffers())}", address, written)
        memory.find(address, address + size).poison(POISONS[0])

    def release(self, device: int, address: int) -> None:
        try:
            self._device(device).streams.wait_all()
        finally:
            self._device(device).emulator.memory.unregister(address)
        self._device(device).check()

    def release_later(self, device: int, address: int, stream: int) -> None:
        memory = self._device(device).emulator.memory
        # Also on a device that has failed: the memory is given back.
        self._queue(device, stream).submit(stream, lambda: memory.unregister(address))

    def copy(
        self, device: int, to: int, source: int, size: int, kind: int, stream: int, wait: int
    ) -> None:
        queue = self._queue(device, stream)
        if size == 0:
            return
        target, origin = self._buffer(to, size), self._buffer(source, size)
        expected = {
            _HOST_TO_HOST: (False, False), _TO_DEVICE: (True, False),
            _TO_HOST: (False, True), _ON_DEVICE: (True, True),
        }  # fmt: skip
        if kind != _BY_ADDRESS and expected.get(kind) != (target is not None, origin is not None):
            raise _HipError(INVALID_VALUE)
        # Pageable host memory is the caller's own again when the call returns.
        data = None if origin else np.frombuffer(ctypes.string_at(source, size), np.uint8)

        def action() -> None:
            content, marks = data, None
            if content is None:
                buffer, part = self._part(source, size)
                buffer.poison(POISONS[0])
                content, marks = buffer.data[part], buffer.written[part]
            if target is None:
                ctypes.memmove(to, np.ascontiguousarray(content).ctypes.data, size)
                return
            buffer, part = self._part(to, size)
            buffer.data[part] = content
            buffer.written[part] = True if marks is None else marks

        work = queue.submit(stream, self._guarded(device, "copy", action))
        if wait or target is None:
            work.wait()
            self._device(device).check()

    def fill(
        self, device: int, to: int, pitch: int, value: int, item_bytes: int, items: int, rows: int,
        stream: int,
    ) -> None:  # fmt: skip
        queue = self._queue(device, stream)
        if items == 0 or rows == 0:
            return
        width = items * item_bytes
        size = (rows - 1) * pitch + width
        if self._buffer(to, size) is None:
            raise _HipError(INVALID_VALUE)
        item = np.frombuffer(value.to_bytes(4, "little")[:item_bytes], np.uint8)

        def action() -> None:
            buffer, part = self._part(to, size)
            for first in range(part.start, part.stop, pitch or width):
                buffer.data[first : first + width] = np.tile(item, items)
                buffer.written[first : first + width] = True

        queue.submit(stream, self._guarded(device, "fill", action))

    def load(self, device: int, image: int, size: int, module: Any) -> None:
        state = self._device(device)
        state.check()
        code = ctypes.string_at(image, size)
        try:
            parsed = code_object.parse(code)
        except Exception as error:  # any exception that a damaged file causes in the parser
            self._complain(f"module load on device {device}: {type(error).__name__}: {error}")
            raise _HipError(INVALID_IMAGE) from error
        if parsed.arch != state.emulator.arch:
            raise _HipError(NO_BINARY_FOR_GPU)
        module[0] = number = next(self._numbers)
        self._modules[number] = _Module(device, code, parsed)

    def unload(self, device: int, module: int) -> None:
        gone_module = self._modules.pop(module, None)
        if gone_module is None:
            raise _HipError(INVALID_HANDLE)
        if gone_module.image is not None:
            self._device(device).emulator.memory.unregister(gone_module.image)
        gone = [f for f, (owner, _) in self._functions.items() if owner == module]
        for function in gone:
            del self._functions[function]

    def function(self, module: int, symbol: bytes, function: Any) -> None:
        if module not in self._modules:
            raise _HipError(INVALID_HANDLE)
        name = symbol.decode()
        if name not in self._modules[module].parsed.kernels:
            raise _HipError(NOT_FOUND)
        function[0] = number = next(self._numbers)
        self._functions[number] = (module, name)

    def variable(self, device: int, module: int, symbol: bytes, address: Any, size: Any) -> None:
        if module not in self._modules:
            raise _HipError(INVALID_HANDLE)
        owner = self._modules[module]
        if symbol.decode() not in owner.parsed.variables:
            raise _HipError(NOT_FOUND)
        if owner.image is None:
            image = np.frombuffer(owner.parsed.image, np.uint8).copy()
            memory = self._device(device).emulator.memory
            written = np.ones(image.size, bool)
            owner.image = memory.register(image, f"module {module:#x}", written=written)
        offset, size[0] = owner.parsed.variables[symbol.decode()]
        address[0] = owner.image + offset

    def arguments(self, function: int, count: Any, offsets: Any, sizes: Any) -> None:
        listed = self._kernel(function).metadata.get(".args", ())
        explicit = [a for a in listed if not a[".value_kind"].startswith("hidden_")]
        if len(explicit) > count[0]:
            raise _HipError(INVALID_VALUE)
        count[0] = len(explicit)
        for i, argument in enumerate(explicit):
            offsets[i], sizes[i] = argument[".offset"], argument[".size"]

    def resources(
        self, function: int, registers: Any, lds: Any, scratch: Any, threads: Any
    ) -> None:
        kernel = self._kernel(function)
        registers[0], lds[0] = kernel.descriptor.vgprs, kernel.descriptor.group_segment_size
        scratch[0] = kernel.descriptor.private_segment_size
        threads[0] = kernel.metadata.get(".max_flat_workgroup_size", 1024)

    def launch(
        self, device: int, function: int, grid: Any, block: Any, dynamic_lds: int, stream: int,
        kernarg: int | None, size: int,
    ) -> None:  # fmt: skip
        queue = self._queue(device, stream)
        if function not in self._functions:
            raise _HipError(INVALID_HANDLE)
        number, symbol = self._functions[function]
        module = self._modules[number]
        if module.device != device:
            raise _HipError(INVALID_HANDLE)
        groups, items = (grid[0], grid[1], grid[2]), (block[0], block[1], block[2])
        arguments = ctypes.string_at(kernarg, size) if kernarg else b""
        emulator = self._device(device).emulator
        name = f"{symbol}.{emulator.arch}"

        def action() -> None:
            checks, report = self.checks, None
            if self._takes_turns(name):
                checks = dataclasses.replace(checks, same_barrier=False)
            try:
                report = emulator.launch(
                    *emulator.program(module.code, symbol), grid=groups, block=items,
                    kernarg=arguments, dynamic_lds=dynamic_lds, schedule=self.schedule,
                    checks=checks, image=module.image,
                )  # fmt: skip
            finally:
                self.launches.append(Launch(device, symbol, groups, stream, report))
            known = self._known(name)
            unexpected = [f for f in report.findings if f.signature not in known]
            if unexpected:
                raise EmulationError("\n".join(map(str, unexpected)))

        queue.submit(stream, self._guarded(device, symbol, action))

    def create_stream(self, device: int, blocking: int, stream: Any) -> None:
        stream[0] = number = next(self._numbers)
        self._device(device).streams.add(number, bool(blocking))

    def destroy_stream(self, device: int, stream: int) -> None:
        if stream == 0 or stream not in self._device(device).streams:
            raise _HipError(INVALID_HANDLE)
        # HIP lets the work run on; here it is done before anybody could wait for it no more.
        self._device(device).streams.wait(stream)
        self._device(device).streams.remove(stream)

    def wait_stream(self, device: int, stream: int) -> None:
        self._queue(device, stream).wait(stream)
        self._device(device).check()

    def query_stream(self, device: int, stream: int) -> None:
        self._progress(self._queue(device, stream).next_of(stream))

    def stream_info(self, current: int, stream: int, device: Any, blocking: Any) -> None:
        owners = [n for n, d in self._devices.items() if stream and stream in d.streams]
        device[0] = owners[0] if owners else current
        if stream not in self._device(device[0]).streams:
            raise _HipError(INVALID_HANDLE)
        blocking[0] = stream == 0 or self._device(device[0]).streams[stream].blocking

    def host_function(self, device: int, stream: int, action: int, data: int) -> None:
        function = _HOST_FUNCTION(action)
        # Whoever asks to be told does not wait: the stream runs up to here now.
        self._queue(device, stream).submit(stream, lambda: function(data)).wait()

    def wait_device(self, device: int) -> None:
        self._device(device).streams.wait_all()
        self._device(device).check()

    def create_event(self, device: int, event: Any) -> None:
        event[0] = number = next(self._numbers)
        self._events[number] = _Event(device)

    def destroy_event(self, event: int) -> None:
        self._event(event)
        del self._events[event]

    def record_event(self, device: int, event: int, stream: int) -> None:
        recorded = self._event(event)

        def action() -> None:
            recorded.time = time.perf_counter()

        recorded.time = None
        recorded.work = self._queue(device, stream).submit(stream, action)

    def stream_waits(self, device: int, stream: int, event: int) -> None:
        work = self._event(event).work
        self._queue(device, stream).submit(stream, lambda: None, after=[work])

    def wait_event(self, event: int) -> None:
        recorded = self._event(event)
        if recorded.work is not None:
            recorded.work.wait()
        self._device(recorded.device).check()

    def query_event(self, event: int) -> None:
        work = self._event(event).work
        self._progress(None if work is None or work.done else work.pending()[0])

    def elapsed(self, start: int, stop: int, milliseconds: Any) -> None:
        first, last = self._event(start), self._event(stop)
        if first.work is None or last.work is None:
            raise _HipError(INVALID_HANDLE)
        if first.time is None or last.time is None:
            raise _HipError(NOT_READY)
        milliseconds[0] = 1e3 * (last.time - first.time)

    def call(self, method: str, *arguments: Any) -> int:
        """A call of the library: its error code."""
        with self._lock:
            if self._busy and method == "release":
                # Python's garbage collector, in the middle of another call of this thread.
                self._garbage.append(arguments)
                return 0
            outer, self._busy = self._busy, True
            try:
                getattr(self, method)(*arguments)
                while self._garbage and not outer:
                    self.release(*self._garbage.pop())
            except _HipError as error:
                return error.code
            except Exception:
                self._complain(f"the emulated runtime itself:\n{traceback.format_exc()}")
                return UNKNOWN
            finally:
                self._busy = outer
        return 0

    def _device(self, device: int) -> _EmulatedDevice:
        if device not in self._devices:
            self._devices[device] = _EmulatedDevice(self._arch_of(device))
        return self._devices[device]

    def _queue(self, device: int, stream: int) -> Streams:
        state = self._device(device)
        state.check()
        if stream not in state.streams:
            raise _HipError(INVALID_HANDLE)
        return state.streams

    def _kernel(self, function: int) -> code_object.Kernel:
        if function not in self._functions:
            raise _HipError(INVALID_HANDLE)
        module, symbol = self._functions[function]
        return self._modules[module].parsed.kernels[symbol]

    def _event(self, event: int) -> _Event:
        if event not in self._events:
            raise _HipError(INVALID_HANDLE)
        return self._events[event]

    def _buffer(self, address: int, size: int) -> Buffer | None:
        """The buffer of a device that holds the bytes, None for host memory."""
        for device in self._devices.values():
            for buffer in device.emulator.memory.buffers():
                if buffer.address <= address < buffer.end:
                    if address + size > buffer.end:
                        raise _HipError(INVALID_VALUE)
                    return buffer
        return None

    def _part(self, address: int, size: int) -> tuple[Buffer, slice]:
        buffer = self._buffer(address, size)
        if buffer is None:
            raise MemoryFault(f"[{address:#x}, {address + size:#x}) was freed before its use")
        first = address - buffer.address
        return buffer, slice(first, first + size)

    def _guarded(self, device: int, what: str, action: Callable[[], None]) -> Callable[[], None]:
        """The action, whose failure is the device's; nothing is done on one that has failed."""
        state = self._device(device)

        def guarded() -> None:
            if state.error:
                return
            try:
                action()
            except EmulationError as error:
                fault = isinstance(error, MemoryFault)
                state.error = ILLEGAL_ADDRESS if fault else LAUNCH_FAILURE
                self._complain(f"device {device}, {what}: {type(error).__name__}: {error}")

        return guarded

    def _progress(self, work: Work | None) -> None:
        """A query does one piece of what is asked for, so that polling comes to an end."""
        if work is not None:
            work.do()
            raise _HipError(NOT_READY)

    def _complain(self, message: str) -> None:
        self.failures.append(message)
        print(f"emulated HIP: {message}", file=sys.stderr)


_INT, _U32, _U64, _POINTER = ctypes.c_int, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
_TO_INT, _TO_U32, _TO_U64 = (ctypes.POINTER(each) for each in (_INT, _U32, _U64))
_HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
# The members of EmulatedHipBackend (backend.h) behind its size, in order.
_MEMBERS: dict[str, tuple[Any, ...]] = {
    "allocate": (_INT, _U64, _U64),
    "release": (_INT, _U64),
    "release_later": (_INT, _U64, _U64),
    "copy": (_INT, _U64, _U64, _U64, _INT, _U64, _INT),
    "fill": (_INT, _U64, _U64, _U32, _U32, _U64, _U64, _U64),
    "load": (_INT, _POINTER, _U64, _TO_U64),
    "unload": (_INT, _U64),
    "function": (_U64, ctypes.c_char_p, _TO_U64),
    "arguments": (_U64, _TO_U32, _TO_U32, _TO_U32),
    "resources": (_U64, _TO_U32, _TO_U32, _TO_U32, _TO_U32),
    "variable": (_INT, _U64, ctypes.c_char_p, _TO_U64, _TO_U64),
    "launch": (_INT, _U64, _TO_U32, _TO_U32, _U32, _U64, _POINTER, _U64),
    "create_stream": (_INT, _INT, _TO_U64),
    "destroy_stream": (_INT, _U64),
    "wait_stream": (_INT, _U64),
    "query_stream": (_INT, _U64),
    "stream_info": (_INT, _U64, _TO_INT, _TO_INT),
    "wait_device": (_INT,),
    "host_function": (_INT, _U64, _U64, _U64),
    "create_event": (_INT, _TO_U64),
    "destroy_event": (_U64,),
    "record_event": (_INT, _U64, _U64),
    "stream_waits": (_INT, _U64, _U64),
    "wait_event": (_U64,),
    "query_event": (_U64,),
    "elapsed": (_U64, _U64, ctypes.POINTER(ctypes.c_float)),
}
_TYPES = {name: ctypes.CFUNCTYPE(_INT, *arguments) for name, arguments in _MEMBERS.items()}


class _Backend(ctypes.Structure):
    _fields_ = (("size", _U32), *_TYPES.items())


# The callbacks stay for as long as the process.
_ATTACHED: list[tuple[_Backend, Runtime]] = []


def is_emulated(library: ctypes.CDLL) -> bool:
    return hasattr(library, "emulated_hip_attach")


def attach(
    library: ctypes.CDLL,
    known: Callable[[str], Collection[str]] = lambda kernel: (),
    takes_turns: Callable[[str], bool] = lambda kernel: False,
) -> Runtime:
    """Puts a new Runtime behind the library, in place of the one before.

    `known` gives the signatures of findings that are no faults of a kernel, SYMBOL.ARCH;
    `takes_turns` says whether its waves may meet at different barriers (Checks.same_barrier).

    Raises ValueError for a HIP runtime that is not this folder's.
    """
    if not is_emulated(library):
        raise ValueError(f"{library._name} is not the emulated HIP runtime of tests/emulator/hip")
    library.emulated_hip_arch.restype = ctypes.c_char_p
    runtime = Runtime(lambda device: library.emulated_hip_arch(device).decode(), known, takes_turns)
    backend = _Backend(ctypes.sizeof(_Backend))
    for name, kind in _TYPES.items():
        setattr(backend, name, kind(_bound(runtime, name)))
    _ATTACHED.append((backend, runtime))
    if library.emulated_hip_attach(ctypes.byref(backend)):
        raise ValueError(f"{library._name} has another version of backend.h")
    return runtime


def _bound(runtime: Runtime, method: str) -> Callable[..., int]:
    return lambda *arguments: runtime.call(method, *arguments)
