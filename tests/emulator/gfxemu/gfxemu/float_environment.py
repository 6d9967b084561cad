# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Denormal handling of float32 through the host's own control register.

MODE.fp_denorm[5:4] decides whether float32 instructions flush denormal inputs and results. Doing
that in numpy would triple the cost of every instruction; x86-64 has the same switch (MXCSR's FTZ
and DAZ bits), which libm's fegetenv/fesetenv reach portably on glibc. The setting belongs to the
calling thread; `Float32Denormals` restores it.

Flushing also reaches float64 operations, whose denormals are kept on the GPU: float64 values
below 2**-1022 are not modelled. float16 conversions ignore these bits, as they should.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import platform
from types import TracebackType

from gfxemu.errors import EmulationError

_FTZ_DAZ = 0x8040
_MXCSR_OFFSET = 28  # fenv_t of glibc on x86-64
_FENV_SIZE = 32


@functools.cache
def _math_library() -> ctypes.CDLL:
    """Its name is found by another process, which takes longer than a small kernel."""
    return ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")


class Float32Denormals:
    """Context manager with a switch; `flush(True)` costs about a microsecond."""

    def __init__(self) -> None:
        if platform.machine() != "x86_64":
            raise EmulationError(
                f"the emulator runs on x86_64 only, not {platform.machine()}: "
                "it needs the FTZ and DAZ controls"
            )
        self._libm = _math_library()
        self._saved = self._current()
        keep, flush = bytearray(self._saved), bytearray(self._saved)
        mxcsr = int.from_bytes(self._saved[_MXCSR_OFFSET:], "little")
        keep[_MXCSR_OFFSET:] = (mxcsr & ~_FTZ_DAZ).to_bytes(4, "little")
        flush[_MXCSR_OFFSET:] = (mxcsr | _FTZ_DAZ).to_bytes(4, "little")
        self._environments = [
            ctypes.create_string_buffer(bytes(e), _FENV_SIZE) for e in (keep, flush)
        ]
        self._set = self._libm.fesetenv
        self._flushing: bool | None = None

    def _current(self) -> bytes:
        buffer = ctypes.create_string_buffer(_FENV_SIZE)
        self._libm.fegetenv(buffer)
        return buffer.raw

    def flush(self, on: bool) -> None:
        """Whether float32 operations of this thread flush denormals from now on."""
        if on is not self._flushing:
            self._set(self._environments[on])
            self._flushing = on

    def __enter__(self) -> Float32Denormals:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._set(ctypes.create_string_buffer(self._saved, _FENV_SIZE))
        self._flushing = None
