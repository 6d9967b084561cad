# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Exceptions of the package. Wrong arguments are plain ValueError and TypeError."""

from __future__ import annotations

__all__ = [
    "AttnError",
    "CorruptError",
    "DriverError",
    "OutOfMemoryError",
    "UnsupportedError",
    "from_status",
]


class AttnError(RuntimeError):
    """The library failed; the base of every exception that is not about a wrong argument."""


class UnsupportedError(AttnError, NotImplementedError):
    """Valid arguments that this version, or this build's kernel instances, do not serve."""


class DriverError(AttnError):
    """The GPU runtime is absent, or a call of it failed."""


class OutOfMemoryError(AttnError, MemoryError):
    """The device or the host has not enough memory."""


class CorruptError(AttnError):
    """A code object does not have the digest it was built with."""


def from_status(status: int, message: str) -> Exception:
    """The exception for an attn_status (aiter/attn.h) other than ATTN_OK; called by _C."""
    from aiter_attn import _C

    kinds: dict[int, type[Exception]] = {
        _C.STATUS["invalid_argument"]: ValueError,
        _C.STATUS["unsupported"]: UnsupportedError,
        _C.STATUS["driver"]: DriverError,
        _C.STATUS["out_of_memory"]: OutOfMemoryError,
        _C.STATUS["corrupt"]: CorruptError,
    }
    return kinds.get(status, AttnError)(message)
