# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""An application that uses HIP by hip-python, and aiter_attn in the same process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import aiter_attn
import numpy as np
import pytest
from hip import hip

from tests.emulation.hip_python.application import HIP, Q, check, on_device, results, run
from tests.emulation.hip_python.hip_python import call
from tests.emulation.wheel import wheel_contents
from tests.emulation.wheel.problems import (
    CAUSAL,
    SHORT,
    Problem,
    Shape,
    forward_and_backward,
)
from tests.emulator.hip.emulated_hip import EmulatedDeviceError, Runtime
from tests.emulator.hip.hip import NON_BLOCKING, DeviceArray, HipError

SHAPES = [
    Shape(((77, 130),), heads=(3, 1), window=CAUSAL),
    Shape(((19, 40), (5, 0), (1, 1)), heads=(4, 2), group=True),
]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_forward_and_backward(shape: Shape, dtype: str) -> None:
    if not wheel_contents.has("group" if shape.group else "batch", True, SHORT[dtype]):
        pytest.skip("no such kernels were built")
    forward_and_backward(Problem(HIP, shape, dtype, 64, HIP.device_of("gfx942")))


def test_an_application(runtime: Runtime) -> None:
    run(Path(os.environ["SCALE"]).read_bytes(), runtime)


def test_flash_attn_func_on_the_default_stream() -> None:
    out = aiter_attn.flash_attn_func(*on_device(), causal=True)
    assert isinstance(out, DeviceArray)
    attributes = call("hipPointerGetAttributes", out.block.address)
    assert (attributes.type, attributes.device) == (hip.hipMemoryType.hipMemoryTypeDevice, 0)
    check(out.read())
    # Behind it, and on the host.
    for address in (out.block.address + out.block.size, Q.ctypes.data):
        with pytest.raises(HipError, match="hipErrorInvalidValue"):
            call("hipPointerGetAttributes", address)


def test_streams_are_ordered_by_events_of_hip_python(runtime: Runtime) -> None:
    """Copies on one stream, the kernel on a second, the copy back on a third."""
    copies, work, last = (HIP.stream(NON_BLOCKING) for _ in range(3))
    given = results(work)
    aiter_attn.mha_fwd(*on_device(copies), causal=True, stream=work, **given)
    given["out"].stream = last
    assert np.isnan(given["out"].read()).any()  # nothing was waited for: it is not written yet
    HIP.order(work, last)
    check(given["out"].read())
    assert {launch.stream for launch in runtime.launches} == {work}


def test_memory_that_hip_python_has_filled() -> None:
    """Equal keys: all probabilities are equal, and so is every row of the result."""
    q, k, v = on_device()
    call("hipMemset", k.block.address, 0, k.block.size)
    call("hipMemset", v.block.address, 0x3C, v.block.size)  # 1.059 in fp16
    out = aiter_attn.flash_attn_func(q, k, v).read()
    np.testing.assert_array_equal(out, np.uint16(0x3C3C).view(np.float16))


def test_the_current_device_stays(runtime: Runtime) -> None:
    HIP.make_current(1)
    stream = HIP.stream(NON_BLOCKING)
    arrays, given = on_device(stream, 1), results(stream, 1)
    HIP.make_current(0)
    aiter_attn.mha_fwd(*arrays, causal=True, stream=stream, **given)
    assert call("hipGetDevice") == 0
    HIP.make_current(1)
    check(given["out"].read())
    assert [launch.device for launch in runtime.launches] == [1]


def test_arrays_of_two_devices_are_refused() -> None:
    (q, _, v), (_, k, _) = on_device(), on_device(device=1)
    with pytest.raises(ValueError, match="k: on ROCm:1, but q is on ROCm:0"):
        aiter_attn.flash_attn_func(q, k, v)


def test_a_stream_of_another_device() -> None:
    HIP.make_current(1)
    stream = HIP.stream(NON_BLOCKING)
    (q, k, v), given = on_device(), results()
    for array in (q, k, v, *given.values()):
        array.stream = stream  # no event is recorded on it
    with pytest.raises(aiter_attn.DriverError, match=r"fmha_fwd.*hipErrorInvalidHandle \(400\)"):
        aiter_attn.mha_fwd(q, k, v, causal=True, stream=stream, **given)
    assert call("hipGetDevice") == 0
    assert hip.hipGetLastError() == (hip.hipError_t.hipSuccess,)


def test_a_pointer_that_is_another_device_s(runtime: Runtime) -> None:
    """DLPack names the device, and the pointer is not asked: the device finds it, hip-python's next
    wait tells so, and so does our next call."""
    (q, _, v), (_, k, _) = on_device(), on_device(device=1)
    k.location = k.told = q.told
    given = results()
    aiter_attn.mha_fwd(q, k, v, causal=True, **given)
    with pytest.raises(HipError, match="hipErrorIllegalAddress"):
        HIP.synchronize()
    with pytest.raises(aiter_attn.DriverError, match="hipErrorIllegalAddress"):
        aiter_attn.mha_fwd(q, k, v, causal=True, **given)
    runtime.recover()
    with pytest.raises(EmulatedDeviceError, match=r"(?s)MemoryFault: .* in no buffer"):
        runtime.raise_failures()


def test_an_error_that_waits_for_its_reader_is_left_to_it() -> None:
    arrays, given = on_device(), results()
    unknown = hip.hipError_t.hipErrorInvalidDevice
    assert hip.hipSetDevice(7) == (unknown,)
    aiter_attn.mha_fwd(*arrays, causal=True, **given)
    assert hip.hipPeekAtLastError() == (unknown,)
    assert hip.hipGetLastError() == (unknown,)
    assert hip.hipGetLastError() == (hip.hipError_t.hipSuccess,)
    check(given["out"].read())


def test_what_is_hip_python_s_own_is_refused_by_name() -> None:
    q, k, v = on_device()
    memory = call("hipMalloc", 1000)
    with pytest.raises(
        TypeError, match=r"q: DeviceArray is no array.*any object that exports DLPack"
    ):
        aiter_attn.flash_attn_func(memory, k, v)
    with pytest.raises(TypeError, match=r"stream: .*ihipStream_t.*a hipStream_t as int"):
        aiter_attn.mha_fwd(q, k, v, stream=call("hipStreamCreate"))
    call("hipFree", memory)


FIRST = {
    "hip-python": "hip.hipGetDeviceCount(); print(_C.driver_info(_C.DEVICE_ROCM))",
    "aiter_attn": "print(_C.driver_info(_C.DEVICE_ROCM)); hip.hipGetDeviceCount()",
}


@pytest.mark.parametrize("first", FIRST)
def test_one_runtime_whoever_loads_it_first(first: str) -> None:
    program = f"""
from aiter_attn import _C
from hip import hip
{FIRST[first]}
print(*{{line.split()[-1] for line in open("/proc/self/maps") if "libamdhip64" in line}})
"""
    library = str(Path(os.environ["ROCM_PATH"]) / "lib/libamdhip64.so")
    named = {"AITER_ATTN_HIP_LIBRARY": library} if first == "aiter_attn" else {}
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **named},
    )  # fmt: skip
    info, loaded = done.stdout.splitlines()
    assert re.search(r"libamdhip64\S*\): 0 gfx942, 1 gfx942", info)
    assert loaded == os.path.realpath(library)
