# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""List scheduling: the time that actions take on a number of workers."""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Action:
    """A command of a build.

    kind     its mnemonic
    seconds  of one processor
    after    numbers of the actions, all before this one, whose results it reads
    bytes    of its results
    """

    kind: str
    seconds: float
    after: tuple[int, ...] = ()
    bytes: int = 0


@dataclasses.dataclass(frozen=True)
class Costs:
    """Seconds that come on top of commands.

    action  of each action on its worker: inputs are staged, results uploaded
    asked   between two actions that the client starts
    worker  before a worker's first action: it fetches compilers and headers
    """

    action: float = 0.0
    asked: float = 0.0
    worker: float = 0.0


def critical_path(actions: Sequence[Action], costs: Costs) -> float:
    """The time with a worker for each action."""
    ends: list[float] = []
    for action in actions:
        begin = max((ends[at] for at in action.after), default=costs.worker)
        ends.append(begin + action.seconds + costs.action)
    return max(ends, default=0.0)


def makespan(actions: Sequence[Action], workers: int, costs: Costs) -> float:
    """The time until all are done. A worker runs one at a time; the first that is ready begins.

    Raises ValueError for less than one worker.
    """
    if workers < 1:
        raise ValueError(f"{workers} workers: none would run; allowed: numbers from 1")
    waits = [len(action.after) for action in actions]
    readers: list[list[int]] = [[] for _ in actions]
    for at, action in enumerate(actions):
        for needed in action.after:
            readers[needed].append(at)
    ready = [(0.0, at) for at, number in enumerate(waits) if not number]  # a heap: it is sorted
    free = [costs.worker] * workers
    # Those that run, by their ends.
    running: list[tuple[float, int]] = []
    asked = end = 0.0
    while ready or running:
        # A result that comes before a worker is free makes others ready, which wait in line.
        if running and (not ready or running[0][0] <= max(free[0], ready[0][0], asked)):
            end, done = heapq.heappop(running)
            for at in readers[done]:
                waits[at] -= 1
                if not waits[at]:
                    heapq.heappush(ready, (end, at))
            continue
        since, at = heapq.heappop(ready)
        begin = max(heapq.heappop(free), since, asked)
        asked = begin + costs.asked
        ends = begin + actions[at].seconds + costs.action
        heapq.heappush(free, ends)
        heapq.heappush(running, (ends, at))
    return end
