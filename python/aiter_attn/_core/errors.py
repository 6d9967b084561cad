# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Exceptions of the package. Wrong arguments are plain ValueError and TypeError."""

from __future__ import annotations

from aiter_attn import _C

__all__ = [
    "AttnError",
    "CorruptError",
    "DriverError",
    "OutOfMemoryError",
    "RoomError",
    "UnsupportedError",
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


class RoomError(ValueError, RuntimeError):
    """A length beyond the room that a sequence has in a cache. A RuntimeError, too, as flash-attn
    raises."""


# The exceptions that _C raises for an attn_status (aiter/attn.h); for one that is not listed,
# AttnError. None of these classes has Python code that runs when an exception is made.
_C.set_errors(
    {
        _C.STATUS["invalid_argument"]: ValueError,
        _C.STATUS["unsupported"]: UnsupportedError,
        _C.STATUS["driver"]: DriverError,
        _C.STATUS["out_of_memory"]: OutOfMemoryError,
        _C.STATUS["corrupt"]: CorruptError,
    },
    AttnError,
)
