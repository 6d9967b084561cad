# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Would the checks notice a broken kernel? Break ours, one instruction at a time.

A mutation counts as noticed when, in one of two schedules, the launch fails, has a finding of a
signature that the intact kernel's has not, or gives wrong numbers in an output that the intact
kernel gets right. By default it is the forward kernel and a few mutations of each kind. With
EMULATION_MUTATIONS=all it is every kernel below with up to 200 of each kind; the rates are printed
and stated in docs/emulation.md.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import os
import random
import re
from collections.abc import Callable, Iterator

import pytest
from gfxemu import EmulationError
from gfxemu.decoder import Program, replace
from gfxemu.disassembler import Instruction

from tests.emulation import known_findings
from tests.emulation.harness.arguments import Overwritten
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, Case
from tests.emulation.harness.kernel import Prepared, kernels, prepare
from tests.emulation.verify.verdict import GATES

_ALL = os.environ.get("EMULATION_MUTATIONS") == "all"
_SCHEDULES = ("sliced:8", "barrier")
_OFFSET = re.compile(r"\boffset(0|1)?:(\d+)")
_MEMORY = re.compile(r"(buffer|global|flat|scratch|ds)_(?!bpermute|permute)")
# Instructions whose absence cannot be seen from outside: they only help timing.
_TIMING = ("s_nop", "s_sleep", "s_setprio")


@dataclasses.dataclass(frozen=True)
class Kind:
    """A way to break a kernel: its instructions, and their replacement."""

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
    Kind("barrier deleted", 0.85, 99),
    # The patches of kernels/ck_fmha add barriers that wait for accesses that others have waited for
    # already.
    Kind("wait deleted", 0.75, 10),
    Kind("wait weakened", 0.5, 10),
    Kind("offset changed", 0.9, 10),
    Kind("instruction deleted", 0.6, 15),
]


@dataclasses.dataclass(frozen=True)
class Seen:
    """The signs of a launch: signatures of findings and outputs whose numbers are wrong."""

    findings: set[str]
    wrong: set[str]


class Subject:
    """A kernel to break, and a problem of several tiles, heads and batches for it."""

    def __init__(self, kind: str, arch: str, lengths: tuple[int, int]):
        self.kernel = next(
            k for k in kernels() if k.instance.kind == kind and k.device.arch == arch
        )
        self._case = Case(
            "to break", (lengths,) * 2, heads_q=2, mask=MASK_BOTTOM_RIGHT, window=(-1, 0)
        )

    def __str__(self) -> str:
        return str(self.kernel)

    @functools.cached_property
    def _prepared(self) -> Prepared:
        return prepare(self.kernel.instance, self._case)

    def run(self, schedule: str, change: Callable[[Program], Program] | None = None) -> Seen:
        outcome = self.kernel.run(self._prepared, schedule=schedule, change=change, limit=20_000)
        return Seen(
            {finding.signature for finding in outcome.report.findings},
            {n for n, e in outcome.errors.items() if not GATES[n].allows(e.rms, e.largest)},
        )

    @functools.cached_property
    def intact(self) -> dict[str, Seen]:
        return {schedule: self.run(schedule) for schedule in _SCHEDULES}

    def noticed(self, index: int, text: str | None) -> str:
        """The sign by which a mutation was noticed; empty where it was not."""
        for schedule, intact in self.intact.items():
            try:
                seen = self.run(schedule, functools.partial(replace, index=index, text=text))
            except (EmulationError, Overwritten) as error:
                return type(error).__name__
            if new := seen.findings - intact.findings:
                return min(new).partition(":")[0]
            if seen.wrong - intact.wrong:
                return "numbers"
        return ""


_FORWARD, _BACKWARD = (100, 130), (91, 155)
_SUBJECTS = [Subject("fwd", "gfx942", _FORWARD)]
if _ALL:
    _SUBJECTS.append(Subject("fwd", "gfx950", _FORWARD))
    _SUBJECTS.append(Subject("bwd_dq_dk_dv", "gfx942", _BACKWARD))


@pytest.mark.parametrize("subject", _SUBJECTS, ids=str)
def test_the_intact_kernel(subject: Subject) -> None:
    known = known_findings.signatures(subject.kernel.name)
    assert all(seen.findings <= known for seen in subject.intact.values())
    assert not subject.intact["sliced:8"].wrong


@pytest.mark.parametrize("kind", _KINDS, ids=lambda k: k.name)
@pytest.mark.parametrize("subject", _SUBJECTS, ids=str)
def test_mutations(subject: Subject, kind: Kind) -> None:
    program = subject.kernel.program
    places = list(kind.places(program))
    assert places
    limit = 200 if _ALL else kind.sample
    if len(places) > limit:
        places = random.Random(11).sample(places, limit)
    noticed: collections.Counter[str] = collections.Counter()
    missed = []
    for index, text in places:
        if how := subject.noticed(index, text):
            noticed[how] += 1
        else:
            missed.append(f"{program.instructions[index]!r} -> {text}")
    print(f"{subject}, {kind.name}: {noticed.total()} of {len(places)} noticed, {dict(noticed)}")
    print("not noticed:", *missed, sep="\n  ")
    assert noticed.total() / len(places) >= kind.least
