# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A build on clusters of several sizes, for several sizes of compile groups."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Mapping, Sequence

from kernels.cluster.graph import Figures
from kernels.cluster.schedule import Action, Costs, critical_path, makespan

WORKERS = (1, 2, 4, 10, 20, 50, 100, 200, 500, 1000)
# Most members of a compile group: of the build's, and of smaller ones.
CUTS = (8, 4, 2, 1)


@dataclasses.dataclass(frozen=True)
class Cut:
    """A build with compile groups of one size.

    actions     mnemonic -> their number
    seconds_of  mnemonic -> seconds of processor time of them
    bytes       of results, their records in the action cache, and requests
    critical    seconds of the longest chain of actions
    walls       number of workers -> seconds
    """

    actions: Mapping[str, int]
    seconds_of: Mapping[str, float]
    bytes: int
    critical: float
    walls: Mapping[int, float]

    @property
    def seconds(self) -> float:
        return sum(self.seconds_of.values())

    def price(self, workers: int, of_hour: float) -> float:
        """Dollars for workers that are rented from the first action to the last."""
        return workers * self.walls[workers] / 3600 * of_hour


@dataclasses.dataclass(frozen=True)
class Simulation:
    title: str
    cuts: Mapping[int, Cut]  # by the most members of a compile group

    def text(self) -> str:
        """For people."""
        whole = self.cuts[CUTS[0]]
        kinds = ", ".join(f"{number:,} {kind}" for kind, number in whole.actions.items())
        lines = [
            f"{self.title}: {sum(whole.actions.values()):,} actions ({kinds})",
            "",
            f"{'members':>8}{'CPU h':>8}{'GB':>7}{'critical s':>11}"
            + "".join(f"{workers:>9,}" for workers in WORKERS),
        ]
        for most, cut in self.cuts.items():
            walls = "".join(f"{duration(cut.walls[workers]):>9}" for workers in WORKERS)
            lines.append(
                f"{most:>8}{cut.seconds / 3600:>8.1f}{cut.bytes / 1e9:>7.2f}{cut.critical:>11.0f}"
                f"{walls}"
            )
        return "\n".join(lines) + "\n"


def duration(seconds: float) -> str:
    """For instance 95 s, 12 min, 3.4 h."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def simulate(
    title: str,
    actions_of: Callable[[int], Sequence[Action]],
    figures: Figures,
    costs: Costs,
    workers: Sequence[int] = WORKERS,
) -> Simulation:
    """Simulates a build; actions_of gives its actions with that many members in a group."""
    cuts = {}
    for most in CUTS:
        actions = actions_of(most)
        kinds = collections.Counter(action.kind for action in actions)
        seconds = dict.fromkeys(kinds, 0.0)
        for action in actions:
            seconds[action.kind] += action.seconds
        cuts[most] = Cut(
            actions=dict(kinds.most_common()),
            seconds_of=dict(sorted(seconds.items(), key=lambda item: -item[1])),
            bytes=sum(action.bytes + figures.bytes["command"] for action in actions),
            critical=critical_path(actions, costs),
            walls={number: makespan(actions, number, costs) for number in workers},
        )
    return Simulation(title, cuts)
