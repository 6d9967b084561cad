# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Exceptions: each says which instruction, where, and what was expected."""

from __future__ import annotations


class EmulationError(Exception):
    """Base class. `where` is filled in by the scheduler: instruction, wave, workgroup."""

    where: str | None = None

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\n  at {self.where}" if self.where else message


class CodeObjectError(EmulationError):
    """The bytes are not a code object this emulator can run."""


class UnsupportedInstruction(EmulationError):
    """An opcode, operand or modifier that has no implementation. Raised at decoding."""


class MemoryFault(EmulationError):
    """An access of global, LDS or scratch memory outside of what was registered."""


class BarrierDivergence(EmulationError):
    """Waves of one workgroup wait at different barriers, or some ended while others wait
    (Checks.same_barrier)."""


class Timeout(EmulationError):
    """More instructions than the launch allows: a loop that does not end."""
