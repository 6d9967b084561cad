# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""One problem in memory of hip-python's, and an application that solves it."""

from __future__ import annotations

import ctypes
from typing import Any

import aiter_attn
import numpy as np
from hip import hip

from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, Case
from tests.emulation.harness.reference import Inputs, reference
from tests.emulation.hip_python.hip_python import HipPython, call
from tests.emulation.verify.verdict import GATES
from tests.emulator.hip.emulated_hip import Runtime
from tests.emulator.hip.hip import DeviceArray

HIP = HipPython()
RNG = np.random.default_rng(0)
Q = RNG.standard_normal((1, 40, 2, 64)).astype(np.float16)
K, V = (RNG.standard_normal((1, 50, 2, 64)).astype(np.float16) for _ in range(2))


def on_device(stream: int = 0, device: int = 0) -> list[DeviceArray]:
    return [HIP.array(x, stream, device) for x in (Q, K, V)]


def results(stream: int = 0, device: int = 0) -> dict[str, DeviceArray]:
    return {
        "out": HIP.empty(Q.shape, "float16", stream, device),
        "lse": HIP.empty((1, 2, 40), "float32", stream, device),
    }


def check(out: np.ndarray[Any, Any], q: np.ndarray[Any, Any] = Q) -> None:
    """Of causal attention, against float64."""
    case = Case("", ((40, 50),), heads_k=2, mask=MASK_BOTTOM_RIGHT, window=(-1, 0))
    tokens = [x[0].view(np.uint16) for x in (q, K, V)]
    expected = reference(case, "fp16", Inputs(*tokens, dout=tokens[0], scale=np.float32(64**-0.5)))
    error = expected["o"].error(out[0].astype(np.float64))
    print(error)
    assert GATES["o"].allows(error.rms, error.largest), str(error)


def run(image: bytes, runtime: Runtime) -> None:
    """Its own kernel, of scale.cpp, writes q; ours is queued behind it, on its stream; it waits
    once, at the end, and takes the time by its events."""
    stream = call("hipStreamCreate")
    start, stop = call("hipEventCreate"), call("hipEventCreate")
    module = call("hipModuleLoadData", image)
    scale = call("hipModuleGetFunction", module, b"scale")
    call("hipEventRecord", start, stream)
    q, k, v = on_device(int(stream))
    blocks = (Q.size + 255) // 256
    arguments = (ctypes.c_void_p(q.block.address), ctypes.c_float(0.5), ctypes.c_int(Q.size))
    call("hipModuleLaunchKernel", scale, blocks, 1, 1, 256, 1, 1, 0, stream, None, arguments)
    given = results(int(stream))
    out, _ = aiter_attn.mha_fwd(q, k, v, causal=True, stream=int(stream), **given)
    assert out is given["out"]
    call("hipEventRecord", stop, stream)
    got = np.empty(Q.shape, np.float16)
    to_host = hip.hipMemcpyKind.hipMemcpyDeviceToHost
    assert not runtime.launches
    call("hipMemcpyAsync", got, out.block.address, got.nbytes, to_host, stream)
    call("hipStreamSynchronize", stream)
    check(got, Q / 2)
    assert [launch.symbol.split("_d64")[0] for launch in runtime.launches] == ["scale", "fmha_fwd"]
    assert {launch.stream for launch in runtime.launches} == {int(stream)}
    assert call("hipEventElapsedTime", start, stop) > 0
    call("hipModuleUnload", module)
    call("hipStreamDestroy", stream)
