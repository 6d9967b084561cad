# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The wheel's way to the numbers: dispatch, modules, queues, streams, and errors."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiter_attn
import numpy as np
import pytest
from aiter_attn import _C

from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, Case
from tests.emulation.harness.reference import Inputs, reference
from tests.emulation.verify.verdict import GATES
from tests.emulation.wheel import wheel_contents
from tests.emulation.wheel.wheel_contents import has
from tests.emulator.hip.emulated_hip import EmulatedDeviceError, Runtime
from tests.emulator.hip.hip import NON_BLOCKING, DeviceArray, Hip, HipError

needs_varlen = pytest.mark.skipif(
    not has("group", mask=True), reason="no varlen kernels were built"
)
SITE = Path(aiter_attn.__file__).parents[1]


def draw(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


Q, K, V = draw(1, 40, 2, 64), draw(1, 50, 2, 64, seed=1), draw(1, 50, 2, 64, seed=2)


def on_device(hip: Hip, stream: int = 0, device: int = 0) -> list[DeviceArray]:
    return [hip.array(x, stream, device) for x in (Q, K, V)]


def check_causal(keys: int, **results: DeviceArray) -> None:
    """Results of attention over Q and the first keys of K and V."""
    q, k, v = (x[0].view(np.uint16) for x in (Q, K[:, :keys], V[:, :keys]))
    case = Case("", ((40, keys),), heads_k=2, mask=MASK_BOTTOM_RIGHT, window=(-1, 0))
    expected = reference(case, "fp16", Inputs(q, k, v, dout=q, scale=np.float32(64**-0.5)))
    for name, result in results.items():
        actual = result.read()[0]
        error = expected[name].error(actual.astype(np.float64))
        assert GATES[name].allows(error.rms, error.largest), f"{name}: {error}"


def check_out(out: DeviceArray) -> None:
    check_causal(50, o=out)


def kinds(runtime: Runtime) -> list[str]:
    return [wheel_contents.KINDS[launch.symbol] for launch in runtime.launches]


@pytest.fixture
def fail(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """Makes a function of HIP return an error for the rest of the test."""

    def use(function: str, error: int) -> None:
        monkeypatch.setenv("EMULATED_HIP_FAIL", f"{function}={error}")

    return use


def test_flash_attn_func_makes_its_results_where_its_arguments_are(hip: Hip) -> None:
    q, k, v = on_device(hip)
    out, lse, probabilities = aiter_attn.flash_attn_func(
        q, k, v, causal=True, return_attn_probs=True
    )
    assert (out.shape, out.dtype) == ((1, 40, 2, 64), "float16")
    assert (lse.shape, lse.dtype) == ((1, 2, 40), "float32")
    assert probabilities.shape == (0,)
    check_out(out)


@needs_varlen
def test_flash_attn_varlen_func(hip: Hip) -> None:
    q, k, v = (hip.array(x[0]) for x in (Q, K, V))
    starts = [hip.array(np.array([0, len(x[0])], np.int32)) for x in (Q, K)]
    out = aiter_attn.flash_attn_varlen_func(q, k, v, *starts, 40, 50, causal=True)
    check_out(DeviceArray(out.block, (1, *out.shape), "float16", 0, 0))


def test_strided_arrays(hip: Hip) -> None:
    packed = hip.array(np.stack([Q, K[:, :40], V[:, :40]], axis=2))  # as a projection gives them
    q, k, v = (packed[:, :, i] for i in range(3))
    out, lse = aiter_attn.mha_fwd(q, k, v, causal=True)
    check_causal(40, o=out, lse=lse)


@pytest.mark.parametrize(("queries", "keys"), [(40, 0), (0, 50), (0, 0)])
def test_no_keys_or_no_queries(hip: Hip, queries: int, keys: int) -> None:
    q, k, v = (hip.array(x) for x in (Q[:, :queries], K[:, :keys], V[:, :keys]))
    out, lse = aiter_attn.mha_fwd(q, k, v)
    gradients = aiter_attn.mha_bwd(out, q, k, v, out, lse)
    assert (out.read() == 0).all()
    assert (lse.read() == -np.inf).all()
    for gradient, like in zip(gradients, (q, k, v), strict=True):
        assert gradient.shape == like.shape
        assert (gradient.read() == 0).all()


def test_kernels_run_in_order_when_somebody_waits(hip: Hip, runtime: Runtime) -> None:
    stream = hip.stream(NON_BLOCKING)
    q, k, v = on_device(hip, stream)
    out, lse = aiter_attn.mha_fwd(q, k, v, causal=True, stream=stream)
    workspace = hip.empty((1 << 20,), "uint8", stream)
    aiter_attn.mha_bwd(out, q, k, v, out, lse, causal=True, stream=stream, workspace=workspace)
    assert not runtime.launches
    hip.synchronize(stream)
    assert kinds(runtime) == ["fwd", "bwd_dot_do_o", "bwd_dq_dk_dv", "bwd_convert_dq"]
    assert {launch.stream for launch in runtime.launches} == {stream}
    assert all(launch.report for launch in runtime.launches)


def test_a_code_object_is_loaded_once(hip: Hip, fail: Callable[[str, int], None]) -> None:
    q, k, v = on_device(hip)
    aiter_attn.mha_fwd(q, k, v, causal=True)
    fail("hipModuleLoadData", 999)
    out, _ = aiter_attn.mha_fwd(q, k, v, causal=True)
    check_out(out)


def test_arrays_of_other_streams_are_waited_for(hip: Hip, runtime: Runtime) -> None:
    """Nothing but __dlpack__(stream=...) orders the copies and the kernel."""
    q, k, v = (hip.array(x, hip.stream(NON_BLOCKING)) for x in (Q, K, V))
    out = hip.empty(Q.shape, "float16")
    lse = hip.empty((1, 2, 40), "float32")
    stream = hip.stream(NON_BLOCKING)
    aiter_attn.mha_fwd(q, k, v, causal=True, out=out, lse=lse, stream=stream)
    hip.synchronize(stream)
    check_out(out)


def test_arrays_that_nothing_waits_for_are_found(hip: Hip, runtime: Runtime) -> None:
    q, k, v = on_device(hip, hip.stream(NON_BLOCKING))
    stream = hip.stream(NON_BLOCKING)
    for array in (q, k, v):
        array.stream = stream  # says that it is in order there
    aiter_attn.mha_fwd(q, k, v, causal=True, stream=stream)
    with pytest.raises(HipError, match="hipErrorLaunchFailure"):
        hip.synchronize(stream)
    runtime.recover()
    with pytest.raises(EmulatedDeviceError, match="depends on unwritten data"):
        runtime.raise_failures()


def test_an_array_that_was_never_written_is_found(hip: Hip, runtime: Runtime) -> None:
    q, k, _ = on_device(hip)
    aiter_attn.mha_fwd(q, k, hip.empty(V.shape, "float16"), causal=True)
    with pytest.raises(HipError, match="hipErrorLaunchFailure"):
        hip.synchronize()
    runtime.recover()
    with pytest.raises(EmulatedDeviceError, match="depends on unwritten data"):
        runtime.raise_failures()


@needs_varlen
def test_a_fault_is_told_by_the_next_call_and_names_the_instruction(
    hip: Hip, runtime: Runtime
) -> None:
    """The library cannot see lengths that lie on the device."""
    q, k, v = (hip.array(x[0]) for x in (Q, K, V))
    starts = [hip.array(np.array([0, length], np.int32)) for length in (40, 5000)]
    out, lse = aiter_attn.mha_varlen_fwd(q, k, v, *starts, 40, 50, causal=True)
    with pytest.raises(HipError, match="hipErrorIllegalAddress"):
        hip.synchronize()
    with pytest.raises(aiter_attn.DriverError, match="hipErrorIllegalAddress"):
        aiter_attn.mha_varlen_fwd(q, k, v, *starts, 40, 50, causal=True, out=out, lse=lse)
    runtime.recover()
    with pytest.raises(EmulatedDeviceError, match=r"(?s)MemoryFault: .* in no buffer.* wave \d"):
        runtime.raise_failures()
    out, _ = aiter_attn.mha_fwd(*on_device(hip), causal=True)
    check_out(out)


def test_a_failing_launch(hip: Hip, fail: Callable[[str, int], None]) -> None:
    arrays = on_device(hip)
    fail("hipModuleLaunchKernel", 719)
    with pytest.raises(
        aiter_attn.DriverError, match=r"hipModuleLaunchKernel\(fmha_fwd_.*hipErrorLaunchFailure"
    ):
        aiter_attn.mha_fwd(*arrays, causal=True)
    assert hip.library.hipGetLastError() == 0


@pytest.mark.parametrize("function", ["hipModuleLaunchKernel", "hipMemsetD32Async"])
def test_out_of_memory_in_the_library(
    hip: Hip, function: str, fail: Callable[[str, int], None]
) -> None:
    q, k, v = on_device(hip)
    out, lse = aiter_attn.mha_fwd(q, k, v, causal=True)
    workspace = hip.empty((1 << 20,), "uint8")
    fail(function, 2)
    with pytest.raises(aiter_attn.OutOfMemoryError, match=rf"{function}.*out of memory"):
        aiter_attn.mha_bwd(out, q, k, v, out, lse, causal=True, workspace=workspace)


def test_out_of_memory_for_the_results(
    hip: Hip, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = on_device(hip)
    monkeypatch.setenv("EMULATED_HIP_MEMORY", "20000")
    with pytest.raises(HipError, match="hipErrorOutOfMemory"):
        aiter_attn.flash_attn_func(*arrays)


def test_a_device_that_the_wheel_has_no_kernels_for(hip: Hip, runtime: Runtime) -> None:
    if "gfx950" in wheel_contents.ARCHS:
        pytest.skip("this wheel has kernels for both devices")
    with pytest.raises(aiter_attn.UnsupportedError, match=r"gfx950(?s:.*)gfx942"):
        aiter_attn.mha_fwd(*on_device(hip, device=1), causal=True)


# Programs of their own: what is wrong before the first call of a process.

LAUNCH = """
import numpy, sys, aiter_attn
from tests.support.python.dlpack_exporter import KDL_ROCM, Exporter
def array(*shape, dtype="float16"):
    return Exporter(numpy.zeros(shape, dtype), device=(KDL_ROCM, 0))
try:
    aiter_attn.mha_fwd(array(1, 8, 1, 64), array(1, 8, 1, 64), array(1, 8, 1, 64),
                       out=array(1, 8, 1, 64), lse=array(1, 1, 8, dtype="float32"), causal=True)
except aiter_attn.AttnError as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


def message(site: Path = SITE, **environment: str) -> str:
    """The error of one forward pass in a process of its own."""
    path = os.pathsep.join([str(site), *(p for p in sys.path if p != str(SITE))])
    done = subprocess.run(
        [sys.executable, "-c", LAUNCH],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_runtime_without_an_emulator(runtime: Runtime) -> None:
    assert re.match(r"DriverError: hipModuleLoadData failed: .*no emulator is attached", message())


def test_a_machine_without_a_gpu(runtime: Runtime) -> None:
    assert re.match(r"DriverError: .* finds no GPU", message(EMULATED_HIP_DEVICES=""))


def test_a_runtime_that_is_not_there() -> None:
    error = message(AITER_ATTN_HIP_LIBRARY="/nowhere/libamdhip64.so.6")
    assert re.match(r"DriverError: cannot load the HIP runtime '/nowhere/libamdhip64.so.6'", error)


def test_out_of_memory_while_loading(runtime: Runtime) -> None:
    assert re.match(
        r"OutOfMemoryError: hipModuleLoadData failed: .*\(code object [0-9a-f]{64} with fmha_fwd_",
        message(EMULATED_HIP_FAIL="hipModuleLoadData=2"),
    )


def packed_code_objects(data: bytes) -> list[int]:
    """Where zstd frames begin whose header has the size of one of the code objects."""
    sizes = {k["code_object_size"] for k in aiter_attn.kernels()}
    headers = {size.to_bytes(4, "little") for size in sizes}
    headers |= {(size - 256).to_bytes(2, "little") for size in sizes if size < 65536 + 256}
    starts = [m.start() for m in re.finditer(re.escape(b"\x28\xb5\x2f\xfd"), data)]
    return [at for at in starts if any(h in data[at + 5 : at + 11] for h in headers)]


def test_a_damaged_wheel(tmp_path: Path) -> None:
    """A bit of every packed code object flips; the digest is checked before anything is loaded."""
    shutil.copytree(SITE / "aiter_attn", tmp_path / "aiter_attn")
    (extension,) = (tmp_path / "aiter_attn").glob("*.so")
    data = bytearray(extension.read_bytes())
    starts = packed_code_objects(data)
    assert len(starts) >= len({k["key"] for k in aiter_attn.kernels()})
    for start in starts:
        data[start + 64] ^= 1  # the smallest has some 100 bytes
    extension.write_bytes(data)
    assert re.match(r"CorruptError: .*[0-9a-f]{64}", message(tmp_path))


def test_images_that_are_no_code_objects(hip: Hip, runtime: Runtime) -> None:
    def load(image: bytes) -> None:
        hip.made("hipModuleLoadData", image)

    good = _C.code_object(aiter_attn.kernels()[0]["key"])
    load(good)
    with pytest.raises(HipError, match="hipErrorInvalidImage"):
        load(b"no ELF at all".ljust(64, b"\0"))
    with pytest.raises(HipError, match="hipErrorInvalidImage"):
        load(good[:18] + b"\x3e\0" + good[20:])  # for x86
    hip.make_current(1)
    with pytest.raises(HipError, match="hipErrorNoBinaryForGpu"):
        load(good)
