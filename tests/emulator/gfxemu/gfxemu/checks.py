# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Checks that hardware does not make.

- Bounds of global, LDS and scratch memory: always on (errors.MemoryFault), but for stores to LDS,
  which `Checks.lds_stores = False` drops out of bounds as hardware does.
- Barriers: waves that meet at different `s_barrier`s, or wait while another has ended, are an
  error (errors.BarrierDivergence). With `Checks.same_barrier = False` they go on as on hardware,
  which counts arrivals, whichever instruction they come from, of the waves that have not ended.
- Late landing: `Checks.late_landing`; see pending.py. A result used before its s_waitcnt is poison.
- Range checks of raw buffers: `Checks.soffset` says whether soffset is COUNTED, as hardware does
  (vector_memory.py), or LEFT_OUT. COMPARED counts it, and has a finding "soffset" for each
  instruction where leaving it out would have put other bytes in range.
- Races in LDS: `Checks.races`; see lds.RaceDetector. "race": no barrier between the
  instructions. "unwaited-write", "unwaited-read": a barrier, but the first access was not waited
  for before it and may still be under way (seen with late landing only). The read form is common
  in CK's asynchronous pipelines; hardware that serves LDS requests in issue order hides it.
- Uninitialised data: `Checks.uninitialised` executes the kernel twice with different poison in all
  that was not written (registers, LDS, scratch, memory that the caller names) and compares the
  values that leave a wave: addresses, stored values and branches. Poison that is only moved around
  or masked away is no finding. Together with late landing it finds uses of results that have not
  arrived.
"""

from __future__ import annotations

import dataclasses
import zlib

import numpy as np

# The treatment of soffset by the range check of a raw buffer: Checks.soffset.
COUNTED, LEFT_OUT, COMPARED = "counted", "left out", "compared"

# The first is a NaN as float32, float16 and bfloat16; the second an unsuspicious 3.0, 2.1, 3.0.
POISONS = (0x7FF1_7FF1, 0x4040_4040)


@dataclasses.dataclass(frozen=True)
class Checks:
    late_landing: bool = True
    races: bool = True
    uninitialised: bool = True
    lds_stores: bool = True
    same_barrier: bool = True
    soffset: str = COUNTED

    def __post_init__(self) -> None:
        rules = (COUNTED, LEFT_OUT, COMPARED)
        if self.soffset not in rules:
            raise ValueError(f"soffset {self.soffset!r}: use {', '.join(map(repr, rules))}")

    @staticmethod
    def none() -> Checks:
        return Checks(False, False, False, same_barrier=False)


@dataclasses.dataclass(frozen=True)
class Finding:
    """`kind` is "race", "unwaited-read", "unwaited-write", "uninitialised" or "soffset"; `opcodes`
    are the names of the instructions that take part, sorted, each once."""

    kind: str
    message: str
    opcodes: tuple[str, ...]

    @property
    def signature(self) -> str:
        """The part that the finding shares with those of other compilations: kind and opcodes."""
        return f"{self.kind}: {', '.join(self.opcodes)}"

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class ControlFlowDiffers(Exception):
    """The second execution left the path of the first: nothing after this can be compared."""


class Observer:
    """Is shown what leaves a wave: values of all workgroups, or of the lanes of each."""

    def observe(self, pc: int, what: str, data: np.ndarray) -> None:
        raise NotImplementedError

    def observe_lanes(self, pc: int, what: str, data: np.ndarray, lanes: np.ndarray | None) -> None:
        """`data` is [..., workgroup, lane]; of it what is in `lanes` (None: all)."""
        self.observe(pc, what, data if lanes is None else data[..., lanes])


class Recorder(Observer):
    """Of the first execution."""

    def __init__(self) -> None:
        self.log: list[tuple[int, str, int]] = []

    def observe(self, pc: int, what: str, data: np.ndarray) -> None:
        self.log.append((pc, what, zlib.crc32(np.ascontiguousarray(data))))


class Comparer(Observer):
    """Of the second execution."""

    def __init__(self, log: list[tuple[int, str, int]]):
        self._log, self._at = log, 0
        self.differences: dict[tuple[int, str], int] = {}  # (pc, what) -> how often

    def observe(self, pc: int, what: str, data: np.ndarray) -> None:
        if self._at >= len(self._log) or self._log[self._at][:2] != (pc, what):
            self.differences[pc, what] = 1
            raise ControlFlowDiffers
        expected = self._log[self._at][2]
        self._at += 1
        if zlib.crc32(np.ascontiguousarray(data)) != expected:
            self.differences[pc, what] = self.differences.get((pc, what), 0) + 1
            if what == "the branch":
                raise ControlFlowDiffers
