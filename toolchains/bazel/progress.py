# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Progress of the kernels of a running build."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from toolchains.bazel import events as build_events
from toolchains.bazel.cost import Costs
from toolchains.bazel.pace import FIRST, LONG, Pace, Running
from toolchains.bazel.running import has_children, seconds_by_output
from toolchains.bazel.summary import duration


class Progress:
    """Follows a build.

    file      of its events, as it grows
    recorded  seconds of earlier compiles
    """

    def __init__(self, file: str, recorded: Callable[[], Mapping[str, float]]) -> None:
        self._follower = build_events.Follower(file)
        self._recorded = recorded
        self._plans = 0
        self._begin = 0.0
        self._costs = Costs({}, build_events.Plan())
        self._planned: dict[str, float] = {}  # outputs, of groups as well, and their seconds
        self._recipes: dict[str, str] = {}  # planned output -> what it is made by
        self._instances: set[str] = set()
        self._there: set[str] = set()  # before the build
        self._seen: set[str] = set()
        self._compiled = self._cached = 0
        self._pace = Pace(0.0, 1)

    @property
    def actions(self) -> int:
        """The number of completed actions, of all kinds."""
        return self._follower.events.actions

    @property
    def works_here(self) -> bool:
        """Whether a command of the build runs on this machine."""
        return has_children(int(self._follower.events.started.get("serverPid", 0)))

    def read(self, now: float) -> None:
        """Takes what has happened. `now`: seconds, from any moment on."""
        events = self._follower.read()
        if len(events.plans) > self._plans:
            self._read_plans(events, now)
        # The whole dict may be long: it is in order, and the new ones are its last.
        new = []
        for output in reversed(events.compiles):
            if output in self._seen:
                break
            new.append(output)
        for output in new:
            self._seen.add(output)
            if output not in self._planned:
                continue
            # A result of a cache is not brought to this machine before something needs it.
            here = os.path.exists(events.compiles[output].file)
            if output in self._instances:
                self._compiled += here
                self._cached += not here
            if here:
                self._pace.add(self._planned[output], now)
            else:
                self._pace.add_cached(self._planned[output])

    def _read_plans(self, events: build_events.Events, now: float) -> None:
        plan = build_events.plan(events)
        root = events.plans[0].partition("/bazel-out/")[0]
        self._costs = Costs(self._recorded(), plan)
        self._plans = len(events.plans)
        for output, group in plan.kernels.items():
            self._instances.add(output)
            for one in (output, group):
                if one and one not in self._planned:
                    self._planned[one] = self._costs.of(one)
                    self._recipes[one] = plan.recipes[output]
                    if one not in self._seen and os.path.exists(os.path.join(root, one)):
                        self._there.add(one)
        # Compiles that were completed before are counted anew.
        self._begin = self._begin or now
        self._pace = Pace(self._begin, jobs(events.options))
        self._seen.clear()
        self._compiled = self._cached = 0

    def _awaited(self) -> set[str]:
        """The planned outputs that this build makes or has made.

        One that was there before counts only where it is made anew; all of a recipe do where that
        has changed.
        """
        changed = self._follower.events.recipes
        return {
            one
            for one in self._planned
            if one in self._seen or one not in self._there or self._recipes[one] in changed
        }

    def left(self, now: float) -> float | None:
        """Seconds until all kernels are there, estimated; None before a tenth of them is."""
        awaited = self._awaited()
        instances = len(awaited & self._instances)
        done = self._compiled + self._cached
        if not done or done < FIRST * instances:
            return None
        rest = {one: self._planned[one] for one in awaited - self._seen}
        # None runs here where another machine compiles.
        running = [Running(rest[one], taken) for one, taken in seconds_by_output(rest).items()]
        return self._pace.left(rest.values(), now, running)

    def whole(self) -> float:
        """Seconds that all kernels which are not there yet take where no cache has any, estimated
        before their compiles begin."""
        rest = (self._planned[one] for one in self._awaited() - self._seen)
        return sum(rest) / jobs(self._follower.events.options)

    def line(self, now: float) -> str:
        """In words; "" where no kernels are being made."""
        instances = len(self._awaited() & self._instances)
        done = self._compiled + self._cached
        if not instances or done == instances:
            return ""
        counts = [f"{self._compiled} compiled"] if self._compiled else []
        if self._cached:
            counts.append(f"{self._cached} from {self._caches()}")
        left = self.left(now)
        text = f"kernels: {done} of {instances}"
        if counts:
            text += f" ({', '.join(counts)})"
        if left is not None:
            return f"{text}, about {duration(left)} left"
        whole = self.whole()
        return text if whole < LONG else f"{text}, about {duration(whole)} where no cache has them"

    def _caches(self) -> str:
        given = dict(option.partition("=")[::2] for option in self._follower.events.options)
        named = {"--disk_cache": "the disk cache", "--remote_cache": "the cache server"}
        return " or ".join(name for option, name in named.items() if given.get(option)) or "a cache"


def jobs(options: Sequence[str]) -> int:
    """Returns how many compiles run at a time, of Bazel's options: no more than processors here."""
    given = dict(option.partition("=")[::2] for option in options)
    here, asked = os.cpu_count() or 1, given.get("--jobs", "")
    if not asked.isdigit():
        return here
    return int(asked) if given.get("--remote_executor") else min(int(asked), here)
