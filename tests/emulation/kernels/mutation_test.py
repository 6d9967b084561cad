# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Would the checks notice a broken kernel? Break our forward kernel one instruction at a time.

A mutation counts as detected when the launch fails, reports a finding the intact kernel does not
have, or gives wrong numbers, in one of two schedules. EMULATION_MUTATIONS=all tries every place
and prints the rates; otherwise a fixed sample.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import random
import re
from collections.abc import Iterator

import launches
import pytest
from attention import GATES, Attention, Result, Runner, Shape, errors
from gfxemu import Checks, Device, EmulationError, LlvmMc
from gfxemu.decoder import Program, replace
from gfxemu.disassembler import Instruction

_ALL = os.environ.get("EMULATION_MUTATIONS") == "all"
_SCHEDULES = ("sliced:8", "barrier")
_SHAPE = Shape(((100, 130),), batch=2, heads_q=2, heads_k=1, window=(-1, 0))
_OFFSET = re.compile(r"\boffset(0|1)?:(\d+)")
_MEMORY = re.compile(r"(buffer|global|flat|scratch|ds)_(?!bpermute|permute)")
# Instructions whose absence cannot be seen from outside: they only help timing.
_TIMING = ("s_nop", "s_sleep", "s_setprio")


@dataclasses.dataclass(frozen=True)
class Kind:
    """A way to break a kernel: which instructions, and what becomes of them."""

    name: str
    least: float  # share of mutations that must be detected
    sample: int

    def places(self, program: Program) -> Iterator[tuple[int, str | None]]:
        for instruction in program.instructions:
            text = self._change(instruction)
            if text is not False:
                yield instruction.index, text

    def _change(self, i: Instruction) -> str | bool | None:
        """The new text, None for deletion, False for "not here"."""
        if self.name == "barrier deleted":
            return None if i.name == "s_barrier" else False
        if self.name == "wait deleted":
            return None if i.name == "s_waitcnt" else False
        if self.name == "wait weakened":
            weaker = re.sub(r"cnt\((\d+)\)", lambda m: f"cnt({min(int(m[1]) + 1, 15)})", i.text)
            return weaker if i.name == "s_waitcnt" and "expcnt" not in i.text else False
        if self.name == "offset changed":
            if not _MEMORY.match(i.name) or not _OFFSET.search(i.text):
                return False
            step = 1 if _OFFSET.search(i.text)[1] else 16
            return _OFFSET.sub(lambda m: f"offset{m[1] or ''}:{int(m[2]) ^ step}", i.text, count=1)
        if self.name == "instruction deleted":
            return False if i.name in (*_TIMING, "s_endpgm", "s_barrier", "s_waitcnt") else None
        raise AssertionError(self.name)


_KINDS = [
    Kind("barrier deleted", 1.0, 99),
    Kind("wait deleted", 0.8, 10),
    Kind("wait weakened", 0.5, 10),
    Kind("offset changed", 0.9, 10),
    Kind("instruction deleted", 0.6, 15),
]


@functools.cache
def _runner() -> Runner:
    return Runner(Device("gfx942", LlvmMc.from_environment()))


@functools.cache
def _instance() -> launches.Instance:
    return next(i for i in launches.instances() if i.kind == "fwd")


@functools.cache
def _attention() -> Attention:
    return Attention(_instance(), _SHAPE, seed=3)


def _run(schedule: str, index: int = -1, text: str | None = None) -> Result:
    mutate = None if index < 0 else functools.partial(replace, index=index, text=text)
    return _runner().run(
        _instance(), _attention(), schedule=schedule, checks=Checks(), mutate=mutate, limit=100_000
    )


@functools.cache
def _intact(schedule: str) -> tuple[set[str], float]:
    """Kinds of findings, and the error of o."""
    result = _run(schedule)
    return {f.kind for f in result.report.findings}, errors(_attention(), result)["o"]


def _detected(index: int, text: str | None) -> str:
    """How a mutation was noticed; empty where it was not."""
    for schedule in _SCHEDULES:
        try:
            result = _run(schedule, index, text)
        except EmulationError as error:
            return type(error).__name__
        known, _ = _intact(schedule)
        new = {f.kind for f in result.report.findings} - known
        if new:
            return sorted(new)[0]
        if any(error > GATES[name] for name, error in errors(_attention(), result).items()):
            return "numbers"
    return ""


def test_the_intact_kernel() -> None:
    for schedule in _SCHEDULES:
        kinds, error = _intact(schedule)
        assert kinds <= {"unwaited-read"} and error <= GATES["o"]


@pytest.mark.parametrize("kind", _KINDS, ids=lambda k: k.name)
def test_mutations(kind: Kind) -> None:
    _, program = _runner().device.program(launches.code(_instance(), "gfx942"), _instance().symbol)
    places = list(kind.places(program))
    assert places
    limit = 200 if _ALL else kind.sample
    if len(places) > limit:
        places = random.Random(11).sample(places, limit)
    found: dict[str, int] = {}
    missed = []
    for index, text in places:
        how = _detected(index, text)
        if how:
            found[how] = found.get(how, 0) + 1
        else:
            missed.append(f"{program.instructions[index]!r} -> {text}")
    share = sum(found.values()) / len(places)
    print(f"{kind.name}: {sum(found.values())} of {len(places)} detected, by {found}")
    print("not detected:", *missed, sep="\n  ")
    assert share >= kind.least
