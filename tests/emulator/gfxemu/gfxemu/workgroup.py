# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A batch of workgroups that execute in step, and the schedules of their waves."""

from __future__ import annotations

import copy
import dataclasses
import random
from collections.abc import Iterator

import numpy as np

from gfxemu.checks import Checks, Observer
from gfxemu.decoder import Program
from gfxemu.errors import BarrierDivergence, EmulationError, Timeout
from gfxemu.float_environment import Float32Denormals
from gfxemu.lds import Lds
from gfxemu.memory import Memory
from gfxemu.wave import BARRIER, DIVERGED, END, Wave

RUNNING, WAITING, ENDED = range(3)
_UNLIMITED = 1 << 60


class Schedule:
    """Chooses which wave runs next and for how many instructions. Copied when a batch splits."""

    def choose(self, runnable: list[int]) -> tuple[int, int]:
        raise NotImplementedError

    @staticmethod
    def parse(text: str) -> Schedule:
        """`barrier` (each wave until its barrier), `sliced:N`, or `random:SEED`."""
        kind, _, value = text.partition(":")
        if kind == "barrier" and not value:
            return RunToBarrier()
        if kind == "sliced" and value.isdigit() and int(value):
            return Sliced(int(value))
        if kind == "random" and value.isdigit():
            return RandomSlices(int(value))
        raise ValueError(f"schedule {text!r}: use barrier, sliced:N or random:SEED")


@dataclasses.dataclass
class RunToBarrier(Schedule):
    """The lowest wave runs until it waits or ends, then the next."""

    def choose(self, runnable: list[int]) -> tuple[int, int]:
        return runnable[0], _UNLIMITED


@dataclasses.dataclass
class Sliced(Schedule):
    """Round robin, N instructions each: the waves advance together."""

    length: int
    last: int = -1

    def choose(self, runnable: list[int]) -> tuple[int, int]:
        self.last = next((i for i in runnable if i > self.last), runnable[0])
        return self.last, self.length


class RandomSlices(Schedule):
    def __init__(self, seed: int):
        self._random = random.Random(seed)

    def choose(self, runnable: list[int]) -> tuple[int, int]:
        return self._random.choice(runnable), self._random.choice((1, 7, 40, 200, 1000))


class WorkgroupBatch:
    """Workgroups that have taken the same branches so far. `ids` are their (x, y, z)."""

    def __init__(
        self, ids: list[tuple[int, int, int]], program: Program, memory: Memory, lds: Lds,
        denormals: Float32Denormals, observer: Observer | None, checks: Checks, image: int = 0,
    ):  # fmt: skip
        self.ids, self.size = ids, len(ids)
        self.program, self.memory, self.lds = program, memory, lds
        self.denormals, self.observer, self.checks = denormals, observer, checks
        self.image = image  # where the code object lies in memory
        self.waves: list[Wave] = []
        self.states: list[int] = []
        self.epoch = 0  # barriers passed
        # Instruction -> in how many lanes soffset has decided its range check (COMPARED).
        self.soffset_decided: dict[int, int] = {}

    def add_wave(self, wave: Wave) -> None:
        self.waves.append(wave)
        self.states.append(RUNNING)

    def select(self, chosen: np.ndarray) -> WorkgroupBatch:
        lds = self.lds.select(chosen)
        new = WorkgroupBatch([self.ids[i] for i in chosen], self.program, self.memory, lds,
                             self.denormals, self.observer, self.checks, self.image)  # fmt: skip
        new.waves = [w.select(new, chosen) for w in self.waves]
        new.states, new.epoch = list(self.states), self.epoch
        new.soffset_decided = self.soffset_decided
        return new

    def describe(self, pc: int) -> str:
        return repr(self.program.instructions[pc])


def run(batch: WorkgroupBatch, schedule: Schedule, limit: int) -> Iterator[WorkgroupBatch]:
    """Execute to the end; yields every batch that ended (splits make several of one).

    Raises EmulationErrors with the instruction, wave and workgroups in `where`; Timeout after
    `limit` instructions of one wave.
    """
    work = [(batch, schedule)]
    while work:
        current, plan = work.pop()
        halves = _run_until_split(current, plan, limit)
        if halves is None:
            yield current
        else:
            work.extend((half, copy.deepcopy(plan)) for half in halves)


def _run_until_split(
    batch: WorkgroupBatch, schedule: Schedule, limit: int
) -> list[WorkgroupBatch] | None:
    while True:
        runnable = [i for i, state in enumerate(batch.states) if state == RUNNING]
        if not runnable:
            if WAITING not in batch.states:
                return None
            _release_barrier(batch)
            continue
        index, steps = schedule.choose(runnable)
        wave = batch.waves[index]
        batch.denormals.flush(wave.flush_denormals)
        outcome = step(batch, wave, min(steps, limit + 1))
        if wave.executed > limit:
            raise Timeout(f"wave {index} has executed more than {limit} instructions")
        if outcome == BARRIER:
            batch.states[index] = WAITING
        elif outcome == END:
            batch.states[index] = ENDED
        elif outcome == DIVERGED:
            taken = np.nonzero(wave.diverged)[0]
            others = np.nonzero(~wave.diverged)[0]
            return [batch.select(others), batch.select(taken)]


def step(batch: WorkgroupBatch, wave: Wave, steps: int) -> int | None:
    """Run up to `steps` instructions; returns END, BARRIER or DIVERGED where one stopped it."""
    functions = batch.program.functions
    pc, count, outcome = wave.pc, 0, None
    try:
        while count < steps:
            result = functions[pc](wave)
            count += 1
            if result is None:
                pc += 1
            elif result >= 0:
                pc = result
            else:
                outcome = result
                if result == BARRIER:
                    pc += 1
                elif result == DIVERGED:
                    count -= 1
                break
    except EmulationError as error:
        if error.where is None:
            error.where = _where(batch, wave, pc)
        raise
    except Exception as error:
        error.add_note(_where(batch, wave, pc))
        raise
    finally:
        wave.pc = pc
        wave.executed += count
    return outcome


def _where(batch: WorkgroupBatch, wave: Wave, pc: int) -> str:
    ids = ", ".join(map(str, batch.ids[:4])) + (", ..." if batch.size > 4 else "")
    return f"{batch.describe(pc)}, wave {wave.index}, one of the workgroups {ids}"


def _release_barrier(batch: WorkgroupBatch) -> None:
    waiting = [i for i, state in enumerate(batch.states) if state == WAITING]
    barriers = {batch.waves[i].pc - 1 for i in waiting}
    if batch.checks.same_barrier and (len(barriers) > 1 or ENDED in batch.states):
        at = "; ".join(
            f"wave {i} ended" if s == ENDED else f"wave {i} waits at {batch.describe(w.pc - 1)}"
            for i, (s, w) in enumerate(zip(batch.states, batch.waves, strict=True))
        )
        raise BarrierDivergence(f"waves of workgroup {batch.ids[0]} do not meet: {at}")
    for i in waiting:
        batch.states[i] = RUNNING
    batch.epoch += 1
