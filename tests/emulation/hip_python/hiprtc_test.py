# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The application again, whose kernel is compiled in its process: by hip-python's hipRTC."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

from hip import hiprtc

from tests.emulation.hip_python.application import run
from tests.emulator.hip.emulated_hip import Runtime

HIPRTC = Path(os.environ["HIPRTC"]).absolute()
# The libraries that hipRTC and its compiler load, each after those that it needs: the loader of the
# tests' own Python knows no folder but its own.
NEEDED = (
    "libz.so.1", "libzstd.so.1", "libffi.so.8", "libmd.so.0", "libbsd.so.0", "libtinfo.so.6",
    "libedit.so.2", "libstdc++.so.6", "libz3.so.4", "libxml2.so.16", "libnuma.so.1",
    "libLLVM.so.21.1", "libamd_comgr.so.3",
)  # fmt: skip


def call(function: str, *arguments: Any) -> Any:
    error, *results = getattr(hiprtc, function)(*arguments)
    assert error == hiprtc.hiprtcResult.HIPRTC_SUCCESS, f"{function}: {error.name}"
    return results[0] if results else None


def test_a_kernel_that_is_compiled_in_the_process(runtime: Runtime) -> None:
    for library in NEEDED:
        ctypes.CDLL(str(HIPRTC.with_name(library)))
    (Path(os.environ["ROCM_PATH"]) / "lib/libhiprtc.so").symlink_to(HIPRTC)
    os.environ["AMD_COMGR_CACHE"] = "0"  # a folder of the user's
    source = Path(os.environ["SCALE_SOURCE"]).read_bytes()
    program = call("hiprtcCreateProgram", source, b"scale.cpp", 0, None, None)
    call("hiprtcCompileProgram", program, 1, [b"--offload-arch=gfx942"])
    image = bytearray(call("hiprtcGetCodeSize", program))
    call("hiprtcGetCode", program, image)
    call("hiprtcDestroyProgram", program.createRef())
    run(bytes(image), runtime)
