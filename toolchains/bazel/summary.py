# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Summaries of a build, from its records: a line for the terminal, a line for the history."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from toolchains.bazel import events as build_events
from toolchains.bazel import profile as build_profile
from toolchains.bazel.cost import Costs
from toolchains.bazel.pace import FIRST, PATIENCE, Pace, Running

_CACHES = {"disk cache hit": "the disk cache", "remote cache hit": "the cache server"}
_MOST_ESTIMATES = 200
# The ways in which Bazel does things itself: copies, symlinks, files that are written.
_INTERNAL = ("internal",)


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A compile of a kernel or of a group, that ran or came from a cache.

    where    "here", "remote" or "cache"
    seconds  of processor time: what it took, or, from a cache, what it would have
    start    seconds since the build began; span: until it was there
    """

    key: str
    label: str
    mnemonic: str
    where: str
    seconds: float
    start: float
    span: float

    @property
    def is_instance(self) -> bool:
        return self.mnemonic != build_events.GROUP


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Seconds since the first compile began: of the estimate, as estimated, as it was."""

    at: float
    total: float
    took: float

    @property
    def error(self) -> float:
        """Of the total time, as a share of it."""
        return self.total / self.took - 1


def kernels(
    events: build_events.Events, profile: build_profile.Profile, costs: Costs
) -> list[Kernel]:
    """The compiles of a build, in the order in which they were completed.

    The seconds of one that ran are its share of what Bazel counted for all of its kind.
    """
    actions = {action.output: action for action in profile.actions}
    shares = {}
    for mnemonic in (*build_events.INSTANCES, build_events.GROUP):
        counted = events.processor_seconds(mnemonic)
        of_kind = [a for a in profile.actions if a.mnemonic == mnemonic and not a.remote]
        ran = sum(action.ran for action in of_kind)
        shares[mnemonic] = counted / ran if counted and ran else 1.0
    found = []
    for output, compiled in events.compiles.items():
        action = actions[output]
        where = "remote" if action.remote else "here" if action.ran else "cache"
        seconds = action.ran * shares[compiled.mnemonic] if action.ran else costs.of(output)
        found.append(
            Kernel(
                key=build_events.key_of(output),
                label=compiled.label,
                mnemonic=compiled.mnemonic,
                where=where,
                seconds=seconds,
                start=action.start,
                span=action.seconds,
            )
        )
    return found


def estimates(of: list[Kernel], expected: Mapping[str, float], jobs: int) -> list[Estimate]:
    """The estimates that a build's progress gave at the ends of compiles.

    Args:
      of: the build's compiles.
      expected: key -> seconds of processor time, before the build.
      jobs: how many ran at a time.
    """
    ordered = sorted(of, key=lambda kernel: kernel.start + kernel.span)
    if not ordered:
        return []
    begin = min(kernel.start for kernel in ordered)
    total = ordered[-1].start + ordered[-1].span - begin
    work = [expected[kernel.key] for kernel in ordered]
    step = max(len(ordered) // _MOST_ESTIMATES, 1)
    instances = sum(kernel.is_instance for kernel in ordered)
    pace, done, found = Pace(0.0, jobs), 0, []
    for at, kernel in enumerate(ordered[:-1]):
        now = kernel.start + kernel.span - begin
        if kernel.where == "cache":
            pace.add_cached(work[at])
        else:
            pace.add(work[at], now)
        done += kernel.is_instance
        if begin + now < PATIENCE or done < FIRST * instances or at % step:
            continue
        running = [
            Running(expected[k.key], expected[k.key] * (now - k.start + begin) / k.span)
            for k in ordered[at + 1 :]
            if k.start - begin < now and k.where == "here"
        ]
        left = pace.left(work[at + 1 :], now, running)
        if left is not None:
            found.append(Estimate(now, now + left, total))
    return found


def executed_nothing(events: build_events.Events) -> bool:
    return not any(count for name, count in events.runners.items() if name not in _INTERNAL)


def history_line(
    events: build_events.Events, profile: build_profile.Profile, of: list[Kernel]
) -> dict[str, Any]:
    """The build's line in the history: times are in seconds, `at` is one of its start in UTC."""
    instances = [kernel for kernel in of if kernel.is_instance]
    started = int(events.started.get("startTimeMillis", 0)) / 1000
    finished = int(events.finished.get("finishTimeMillis", 0)) / 1000
    return {
        "at": events.started.get("startTime", ""),
        "command": events.started.get("command", ""),
        "targets": events.patterns,
        "exit": events.finished.get("exitCode", {}).get("name", ""),
        "seconds": round(max(finished - started, 0), 1),
        "critical_path": round(sum(seconds for _, seconds in profile.critical_path), 1),
        "actions": events.runners,
        "compiled": sum(kernel.where != "cache" for kernel in instances),
        "cached": sum(kernel.where == "cache" for kernel in instances),
        "compile_seconds": round(sum(k.seconds for k in of if k.where != "cache"), 1),
        "saved_seconds": round(sum(k.seconds for k in of if k.where == "cache"), 1),
    }


def caches(actions: Mapping[str, int]) -> str:
    """Names the caches that gave results: "the disk cache", or both where both did."""
    named = [name for runner, name in _CACHES.items() if actions.get(runner)]
    return " and ".join(named) or "a cache"


def closing_line(line: Mapping[str, Any]) -> str:
    """Of a line of the history; "" for a build without kernels."""
    count = line["compiled"] + line["cached"]
    if not count:
        return ""
    parts = []
    if line["compiled"]:
        parts.append(f"{line['compiled']} compiled in {duration(line['compile_seconds'])} of CPU")
    if line["cached"]:
        parts.append(f"{line['cached']} from {caches(line['actions'])}")
    saved = f", {duration(line['saved_seconds'])} of CPU saved" if line["cached"] else ""
    return f"{count} kernel{'s' * (count != 1)}: {', '.join(parts)}{saved}"


def duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
