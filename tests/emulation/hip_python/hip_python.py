# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The tests' HIP by hip-python: its functions allocate, copy, order and wait.

hip-python's DeviceArray has no DLPack; the arrays of HipPython, over pointers of hip-python's, do.
"""

from __future__ import annotations

from typing import Any

from hip import hip

from tests.emulator.hip.hip import Hip, HipError


def call(function: str, *arguments: Any) -> Any:
    """Calls a function of hip-python; its results without the error, which is raised: HipError."""
    error, *results = getattr(hip, function)(*arguments)
    if error:
        hip.hipGetLastError()
        raise HipError(function, int(error), error.name)
    return results[0] if len(results) == 1 else results


class HipPython(Hip):
    """The runtime that hip-python loads."""

    def __init__(self) -> None:
        """It is loaded by the first call, not here."""

    def __call__(self, function: str, *arguments: Any) -> None:
        call(function, *arguments)

    def made(self, function: str, *arguments: Any) -> int:
        return int(call(function, *arguments))

    def device_count(self) -> int:
        return int(call("hipGetDeviceCount"))

    def device_of(self, arch: str) -> int:
        properties = (call("hipGetDeviceProperties", i) for i in range(self.device_count()))
        return [p.gcnArchName.split(":")[0] for p in properties].index(arch)

    def stream(self, flags: int = 0) -> int:
        if flags:
            return self.made("hipStreamCreateWithFlags", flags)
        return self.made("hipStreamCreate")

    def copy(self, to: int, source: int, size: int, kind: int, stream: int) -> None:
        self("hipMemcpyAsync", to, source, size, hip.hipMemcpyKind(kind), stream)

    def free(self, address: int) -> None:
        hip.hipFree(address)
