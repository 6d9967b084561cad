# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The HIP runtime itself: devices, memory, streams, events, errors."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import resource
import signal

import numpy as np
import pytest

from kernels.archs.archs import read_archs
from tests.emulator.hip.emulated_hip import EmulatedDeviceError, Runtime
from tests.emulator.hip.hip import NON_BLOCKING, TO_DEVICE, TO_HOST, Hip, HipError

ON_DEVICE, BY_ADDRESS = 3, 4
# hipDeviceAttribute...
MULTIPROCESSOR_COUNT, SHARED_MEMORY_PER_BLOCK, WARP_SIZE = 63, 74, 87
DATA = np.arange(1000, dtype=np.int32)


def code(hip: Hip, function: str, *arguments: object) -> int:
    with pytest.raises(HipError) as caught:
        hip(function, *arguments)
    return caught.value.code


def test_devices(hip: Hip, runtime: Runtime) -> None:
    archs = read_archs(os.environ["ARCHS"])
    names = os.environ["EMULATED_HIP_DEVICES"].split(",")
    assert hip.device_count() == len(names)
    for device, name in enumerate(names):
        arch = archs[name]
        properties = ctypes.create_string_buffer(4096)
        hip("hipGetDevicePropertiesR0600", properties, ctypes.c_int(device))
        assert properties.raw[1160:].startswith(f"{name}:sramecc+:xnack-\0".encode())
        assert properties.value == f"AMD {name} (emulated)".encode()
        assert not any(properties.raw[1472:])  # nothing behind the struct
        for attribute, want in (
            (MULTIPROCESSOR_COUNT, arch.compute_units),
            (SHARED_MEMORY_PER_BLOCK, arch.compute_unit.lds),
            (WARP_SIZE, arch.wave_size),
        ):
            value = ctypes.c_int()
            hip("hipDeviceGetAttribute", ctypes.byref(value), attribute, device)
            assert value.value == want
    assert code(hip, "hipSetDevice", len(names)) == 101
    assert hip.library.hipGetLastError() == 0  # `hip` has taken it


def test_occupancy_goes_by_threads_and_lds(hip: Hip) -> None:
    function = "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"
    held = ctypes.c_int()
    for threads, lds, want in ((256, 0, 8), (64, 20 << 10, 3), (1024, 64 << 10, 1)):
        hip(function, ctypes.byref(held), 0x1234, threads, ctypes.c_size_t(lds))
        assert held.value == want
    assert code(hip, function, ctypes.byref(held), 0x1234, 2048, ctypes.c_size_t(0)) == 1


def test_copies_and_fills(hip: Hip) -> None:
    array = hip.array(DATA)
    other = hip.empty(DATA.shape, "int32")
    hip("hipMemcpy", other.block.address, array.block.address, DATA.nbytes, ON_DEVICE)
    assert (other.read() == DATA).all()
    hip("hipMemsetD32Async", other.block.address + 40, ctypes.c_int(-7), 5, 0)
    hip("hipMemsetAsync", other.block.address, ctypes.c_int(0xAB), 8, 0)
    # 3 rows of 8 bytes, 40 bytes apart
    hip("hipMemset2DAsync", other.block.address + 400, 40, ctypes.c_int(0), 8, 3, 0)
    expected = DATA.copy()
    expected[10:15], expected[:2] = -7, np.array([0xABABABAB] * 2, np.uint32).view(np.int32)
    for row in (100, 110, 120):
        expected[row : row + 2] = 0
    assert (other.read() == expected).all()


def test_a_copy_takes_host_memory_as_it_is_at_the_call(hip: Hip) -> None:
    data, stream = DATA.copy(), hip.stream(NON_BLOCKING)
    array = hip.array(data, stream)
    data[:] = 0
    assert (array.read() == DATA).all()


def test_memory_that_nobody_wrote_is_poison(hip: Hip, runtime: Runtime) -> None:
    array = hip.empty((100,), "float32")
    hip("hipMemsetAsync", array.block.address, ctypes.c_int(0), 200, 0)
    values = array.read()
    assert (values[:50] == 0).all()
    assert np.isnan(values[50:]).all()


def test_a_device_pointer_is_nothing_to_the_host(hip: Hip, runtime: Runtime) -> None:
    array = hip.array(DATA)
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        ctypes.string_at(array.block.address, 1)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGSEGV


def test_memory_ends(hip: Hip, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    hip.make_current(1)
    monkeypatch.setenv("EMULATED_HIP_MEMORY", "100000")
    first = hip.empty((60000,), "uint8", device=1)
    assert code(hip, "hipMalloc", ctypes.byref(ctypes.c_void_p()), 50000) == 2
    hip("hipMemGetInfo", ctypes.byref(free), ctypes.byref(total))
    assert (free.value, total.value) == (40000, 100000)
    del first
    hip.empty((100000,), "uint8", device=1)


def test_addresses_that_are_not_memory(hip: Hip, runtime: Runtime) -> None:
    array = hip.array(DATA)
    address, host = array.block.address, DATA.ctypes.data
    assert code(hip, "hipFree", address + 4) == 1
    assert code(hip, "hipMemsetD32Async", address, 0, 1001, 0) == 1
    assert code(hip, "hipMemsetAsync", host, 0, 4, 0) == 1
    assert code(hip, "hipMemcpy", address, host, 4, TO_HOST) == 1
    assert code(hip, "hipMemcpy", address + 3999, host, 4, BY_ADDRESS) == 1
    freed = hip.made("hipMalloc", 16)
    hip("hipFree", freed)
    assert code(hip, "hipFree", freed) == 1
    assert code(hip, "hipMemcpy", freed, host, 4, TO_DEVICE) == 1
    assert hip.made("hipMalloc", 16) != freed


def test_memory_of_a_stream(hip: Hip, runtime: Runtime) -> None:
    stream = hip.stream()
    address = hip.made("hipMallocAsync", DATA.nbytes, stream)
    back = np.empty_like(DATA)
    hip("hipMemcpyAsync", address, DATA.ctypes.data, DATA.nbytes, TO_DEVICE, stream)
    hip("hipMemcpy", back.ctypes.data, address, DATA.nbytes, TO_HOST)
    assert (back == DATA).all()
    # The copy is queued behind the free, and so finds nothing.
    hip("hipFreeAsync", address, stream)
    hip("hipMemsetD32Async", address, 1, 5, stream)
    assert code(hip, "hipStreamSynchronize", stream) == 700
    with pytest.raises(EmulatedDeviceError, match="was freed before its use"):
        runtime.raise_failures()
    runtime.recover()
    assert code(hip, "hipFreeAsync", address, stream) == 1
    assert code(hip, "hipMallocAsync", ctypes.byref(ctypes.c_void_p()), 16, 0x1234) == 400
    assert code(hip, "hipFreeAsync", hip.made("hipMalloc", 16), 0x1234) == 400


def test_the_default_stream_is_in_order_with_blocking_streams(hip: Hip) -> None:
    blocking = hip.stream()
    array = hip.array(DATA, blocking)
    address = array.block.address
    hip("hipMemsetD32Async", address, 1, 500, 0)
    hip("hipMemsetD32Async", address, 2, 250, blocking)
    hip.synchronize(blocking)
    array.stream = 0
    assert (array.read() == np.concatenate([[2] * 250, [1] * 250, DATA[500:]])).all()


def test_streams_without_order_are_not_waited_for(hip: Hip, runtime: Runtime) -> None:
    first, second = hip.stream(NON_BLOCKING), hip.stream(NON_BLOCKING)
    array = hip.array(DATA, first)
    array.stream = second
    assert (array.read() != DATA).all()
    hip.order(first, second)
    assert (array.read() == DATA).all()


def test_events(hip: Hip, runtime: Runtime) -> None:
    stream, (start, stop) = hip.stream(), (hip.made("hipEventCreate") for _ in range(2))
    hip("hipEventRecord", start, stream)
    array = hip.array(DATA, stream)
    hip("hipEventRecord", stop, stream)
    elapsed = ctypes.c_float()
    assert code(hip, "hipEventElapsedTime", ctypes.byref(elapsed), start, stop) == 600
    assert code(hip, "hipStreamQuery", stream) == 600
    hip("hipEventSynchronize", stop)
    hip("hipEventQuery", stop)
    hip("hipStreamQuery", stream)
    hip("hipEventElapsedTime", ctypes.byref(elapsed), start, stop)
    assert elapsed.value >= 0
    assert (array.read() == DATA).all()
    hip("hipEventDestroy", start)
    assert code(hip, "hipEventRecord", start, stream) == 400


def test_polling_ends(hip: Hip, runtime: Runtime) -> None:
    stream = hip.stream()
    for _ in range(5):
        hip.array(DATA, stream).block.address = 0  # not freed here: freeing would wait
    polls = 0
    while hip.library.hipStreamQuery(ctypes.c_void_p(stream)):
        polls += 1
    assert polls == 5


def test_handles_that_are_none(hip: Hip, runtime: Runtime) -> None:
    assert code(hip, "hipStreamSynchronize", 0x1234) == 400
    assert code(hip, "hipModuleUnload", 0x1234) == 400
    assert code(hip, "hipModuleGetFunction", ctypes.byref(ctypes.c_void_p()), 0x1234, b"x") == 400
    with pytest.raises(HipError, match="hipErrorInvalidHandle"):
        hip.launch(0x1234, (1, 1, 1), (64, 1, 1), b"", 0)
    with pytest.raises(HipError, match="hipErrorInvalidConfiguration"):
        hip.launch(0x1234, (1, 0, 1), (64, 1, 1), b"", 0)
    stream = hip.stream()
    hip("hipStreamDestroy", stream)
    assert code(hip, "hipStreamSynchronize", stream) == 400
