# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""NVRTC and the CUDA driver through ctypes: the part that compiles and launches one kernel."""

from __future__ import annotations

import ctypes
import glob
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[3] / "kernels" / "norm"
HEADERS = ("arguments.h", "device.h", "layout.h", "turns.h", "exchange.h", "rows.h")

_MAX_DYNAMIC_SHARED = 8
_NON_PORTABLE_CLUSTER = 14
_PROGRAMMATIC_SERIALIZATION = 6


def find_nvrtc() -> str:
    """The path of pip's libnvrtc, or the name by which the system's is found."""
    for folder in [os.environ.get("NVRTC_FOLDER", ""), *sys.path]:
        for pattern in ("nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib", ""):
            found = sorted(glob.glob(os.path.join(folder, pattern, "libnvrtc.so.[0-9]*")))
            if folder and found:
                return found[0]
    return "libnvrtc.so"


class CompileError(RuntimeError):
    """NVRTC's log."""


def compile_cubin(source: str, macros: Mapping[str, object], arch: str = "sm_90") -> bytes:
    """Machine code of kernels/norm/`source` with `macros` defined. Raises CompileError."""
    nvrtc = ctypes.CDLL(find_nvrtc())
    names = (ctypes.c_char_p * len(HEADERS))(*[h.encode() for h in HEADERS])
    texts = (ctypes.c_char_p * len(HEADERS))(*[(SOURCES / h).read_bytes() for h in HEADERS])
    program = ctypes.c_void_p()
    code = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program),
        (SOURCES / source).read_bytes(),
        source.encode(),
        len(HEADERS),
        texts,
        names,
    )
    if code:
        raise CompileError(f"nvrtcCreateProgram returned {code}")
    options = [f"-arch={arch}", "-std=c++17", *(f"-D{k}={v}" for k, v in macros.items())]
    array = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    code = nvrtc.nvrtcCompileProgram(program, len(options), array)
    size = ctypes.c_size_t()
    if code:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        raise CompileError(f"{source} {dict(macros)}:\n{log.value.decode()}")
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, cubin)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin.raw


class _Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_ubyte * 64)]


class _LaunchConfig(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("attribute_count", ctypes.c_uint),
    ]


def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _must(code: int, what: str) -> None:
    if code:
        raise RuntimeError(f"{what} returned CUDA error {code}")


class Kernel:
    """A kernel of a loaded cubin; the context is the caller's current one."""

    def __init__(self, module: Module, name: str, threads: int, shared_bytes: int = 0) -> None:
        self._cuda = _driver()
        self._module = module  # keeps it loaded
        self._function = ctypes.c_void_p()
        self.threads, self.shared_bytes = threads, shared_bytes
        _must(
            self._cuda.cuModuleGetFunction(
                ctypes.byref(self._function), module.handle, name.encode()
            ),
            f"cuModuleGetFunction({name})",
        )
        for attribute, value in (
            (_MAX_DYNAMIC_SHARED, shared_bytes),
            (_NON_PORTABLE_CLUSTER, 1),
        ):
            _must(
                self._cuda.cuFuncSetAttribute(self._function, attribute, value),
                f"cuFuncSetAttribute({attribute}, {value})",
            )

    def _attribute(self, which: int) -> int:
        value = ctypes.c_int()
        self._cuda.cuFuncGetAttribute(ctypes.byref(value), which, self._function)
        return value.value

    @property
    def registers(self) -> int:
        return self._attribute(4)

    @property
    def local_bytes(self) -> int:
        """Stack and spills of a thread."""
        return self._attribute(3)

    def resident_clusters(self, cluster: int, sms: int) -> int:
        """Clusters of `cluster` CTAs that the device holds at a time."""
        count = ctypes.c_int()
        if cluster == 1:
            code = self._cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                ctypes.byref(count),
                self._function,
                self.threads,
                ctypes.c_size_t(self.shared_bytes),
            )
            _must(code, "cuOccupancyMaxActiveBlocksPerMultiprocessor")
            return count.value * sms
        config = self._config((cluster * sms, 1), 0, False)
        code = self._cuda.cuOccupancyMaxActiveClusters(
            ctypes.byref(count), self._function, ctypes.byref(config)
        )
        _must(code, "cuOccupancyMaxActiveClusters")
        return count.value

    def _config(self, grid: Sequence[int], stream: int, dependent: bool) -> _LaunchConfig:
        config = _LaunchConfig(
            grid=(grid[0], grid[1], 1),
            block=(self.threads, 1, 1),
            shared_bytes=self.shared_bytes,
            stream=stream,
        )
        if dependent:
            attribute = _Attribute(id=_PROGRAMMATIC_SERIALIZATION)
            attribute.value[0] = 1
            config.attributes = ctypes.pointer(attribute)
            config.attribute_count = 1
        return config

    def launcher(
        self, grid: Sequence[int], arguments: ctypes.Structure, stream: int, dependent: bool = False
    ):
        """A function that launches; `dependent`: may start before the grid ahead has ended."""
        config = self._config(grid, stream, dependent)
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(arguments))
        pointer = ctypes.byref(config)
        launch, function = self._cuda.cuLaunchKernelEx, self._function

        def run(keep: object = (config, arguments)) -> None:
            _must(launch(pointer, function, parameters, None), "cuLaunchKernelEx")

        return run


class Module:
    def __init__(self, cubin: bytes) -> None:
        self._cuda = _driver()
        self.handle = ctypes.c_void_p()
        _must(self._cuda.cuModuleLoadData(ctypes.byref(self.handle), cubin), "cuModuleLoadData")

    def __del__(self) -> None:
        # At the end of the interpreter its context may be gone.
        if self.handle and not sys.is_finalizing():
            self._cuda.cuModuleUnload(self.handle)
