# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The page of a workspace's last build."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from toolchains.bazel import events as build_events
from toolchains.bazel import profile as build_profile
from toolchains.bazel import summary
from toolchains.bazel.cost import Costs
from toolchains.bazel.progress import jobs
from toolchains.bazel.recording import FILES, PLAN
from toolchains.pages import pages
from toolchains.pages.pages import Plot
from toolchains.report import execution_log
from toolchains.report.execution_log import Spawn

_MOST_BARS = 20
_MOST_KINDS = 12
_MOST_BUILDS = 50
_GOOD = 0.2
_WHERE = {"here": "compiled here", "remote": "compiled remotely", "cache": "from a cache"}


@dataclasses.dataclass(frozen=True)
class Build:
    """All that is known of a build."""

    line: Mapping[str, Any]
    kernels: Sequence[summary.Kernel]
    profile: build_profile.Profile
    spawns: Sequence[Spawn]
    estimates: Sequence[summary.Estimate]


def read(folder: Path, recorded: Mapping[str, float]) -> Build:
    """Reads the records of a build. Raises OSError, EOFError or ValueError."""
    events = build_events.read(str(folder / FILES["--build_event_json_file"]))
    profile = build_profile.read(str(folder / FILES["--profile"]))
    plan = build_events.Plan(**json.loads((folder / PLAN).read_text("utf-8")))
    kernels = summary.kernels(events, profile, Costs(recorded, plan))
    told = {build_events.key_of(output) for of in plan.kernels.items() for output in of}
    return Build(
        line=summary.history_line(events, profile, kernels),
        kernels=kernels,
        profile=profile,
        # Progress says nothing of kernels that no launch table has.
        estimates=summary.estimates(
            [kernel for kernel in kernels if kernel.key in told], plan.seconds, jobs(events.options)
        ),
        spawns=execution_log.read(folder / FILES["--execution_log_compact_file"]),
    )


def page(build: Build, history: Sequence[Mapping[str, Any]], chart_js: Path) -> str:
    """The page; history has the builds of the workspace, the earliest first."""
    now = [
        plot
        for plot in (
            _results(build),
            _slowest(build),
            _critical_path(build),
            _sizes(build),
            _estimates(build),
        )
        if plot
    ]
    then = _history(history[-_MOST_BUILDS:])
    body = [
        _head(build),
        pages.plots(now),
        "<h2>Kernels</h2>",
        _kernels(build) if build.kernels else "<p>This build had no kernels to compile.</p>",
        "<h2>Critical path</h2><p class=mild>The chain of actions that no number of processors "
        "makes shorter, in the order in which they ran.</p>",
        pages.table(["Action", "s"], [[n, round(s, 2)] for n, s in build.profile.critical_path]),
        "<h2>Builds of this workspace</h2>",
        pages.plots(then, first=len(now)),
        _builds(history),
    ]
    return pages.page("The last build", "\n".join(body), [*now, *then], chart_js)


def _head(build: Build) -> str:
    line = build.line
    ran = sum(count for name, count in line["actions"].items() if name != "internal")
    said = summary.closing_line(line) or f"{ran} actions, no kernels"
    command = f"bazel {line['command']} {' '.join(line['targets'])}"
    facts = {
        "Began": line["at"],
        "Ended": f"{line['exit']}, after {summary.duration(line['seconds'])}; the critical path is "
        f"{summary.duration(line['critical_path'])}",
        "Actions": ", ".join(f"{count:,} {name}" for name, count in line["actions"].items()),
    }
    listed = "".join(f"<dt>{k}</dt><dd>{escape(str(v))}</dd>" for k, v in facts.items())
    return f"<p><b>{escape(said)}</b></p><p><code>{escape(command)}</code></p><dl>{listed}</dl>"


def _results(build: Build) -> Plot | None:
    """Actions by kind, and where their results came from."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for spawn in build.spawns:
        counts[spawn.mnemonic][spawn.runner] += 1
    kinds = sorted(counts, key=lambda kind: -counts[kind].total())[:_MOST_KINDS]
    runners = sorted({runner for kind in kinds for runner in counts[kind]})
    if not kinds:
        return None
    return Plot(
        "Where results came from",
        "bar",
        kinds,
        {runner: [counts[kind][runner] for kind in kinds] for runner in runners},
        x="actions",
        y="kind",
        stacked=True,
        lying=True,
    )


def _slowest(build: Build) -> Plot | None:
    """Kernels first; a build that compiled none has other actions that took long."""
    ran = {k.key: k.seconds for k in build.kernels if k.where != "cache"}
    title, axis = "Slowest compiles of kernels", "CPU seconds"
    if not ran:
        title, axis = "Slowest actions", "seconds"
        ran = {a.name: a.ran for a in build.profile.actions if a.ran}
    return _bars(title, axis, ran)


def _critical_path(build: Build) -> Plot | None:
    names = {}
    for at, (name, seconds) in enumerate(build.profile.critical_path, 1):
        doing, _, what = name.removeprefix("action ").strip("'").partition(" ")
        names[f"{at}. {doing} {_short(what)}"] = seconds
    return _bars("Longest of the critical path", "seconds", names)


def _sizes(build: Build) -> Plot | None:
    sizes = {s.outputs[0][0]: s.size / 1024 for s in build.spawns if s.outputs}
    return _bars("Largest results", "KiB", sizes)


def _estimates(build: Build) -> Plot | None:
    """The time that progress said, against the time that it took."""
    if not build.estimates:
        return None
    first = build.estimates[0].error
    good = sum(abs(e.error) <= _GOOD for e in build.estimates) / len(build.estimates)
    return Plot(
        f"Estimates of the kernels' time: the first {first:+.0%} off, "
        f"{good:.0%} of all within {_GOOD:.0%}",
        "line",
        [f"{estimate.at:.0f}" for estimate in build.estimates],
        {
            "estimated": [round(estimate.total, 1) for estimate in build.estimates],
            "it took": [round(estimate.took, 1) for estimate in build.estimates],
        },
        x="seconds since the first compile began",
        y="seconds",
    )


def _bars(title: str, axis: str, values: Mapping[str, float]) -> Plot | None:
    chosen = sorted(values, key=lambda name: -values[name])[:_MOST_BARS]
    numbers = [round(values[name], 2) for name in chosen]
    if not any(numbers):
        return None
    return Plot(
        title,
        "bar",
        list(chosen) if axis == "seconds" else [_short(n) for n in chosen],
        {axis: numbers},
        x=axis,
        lying=True,
    )


def _short(name: str) -> str:
    """The end of a path, cut in the middle: names of kernels differ at both ends."""
    base = re.split(r"[/:]", name)[-1].removesuffix(".hsaco")
    return base if len(base) <= 36 else f"{base[:16]}…{base[-19:]}"


def _history(history: Sequence[Mapping[str, Any]]) -> list[Plot]:
    if not history:
        return []
    labels = [line["at"][:16].replace("T", " ") for line in history]

    def series(**names: str) -> dict[str, list[float | None]]:
        return {
            label.replace("_", " "): [line[key] for line in history] for label, key in names.items()
        }

    return [
        Plot(
            "Kernels of each build",
            "bar",
            labels,
            series(compiled="compiled", from_a_cache="cached"),
            x="build",
            y="kernels",
            stacked=True,
        ),
        Plot(
            "Time of each build",
            "line",
            labels,
            series(
                elapsed="seconds",
                critical_path="critical_path",
                CPU_of_compiles="compile_seconds",
                CPU_saved="saved_seconds",
            ),
            x="build",
            y="seconds",
        ),
    ]


def _kernels(build: Build) -> str:
    sizes = {build_events.key_of(path): size for s in build.spawns for path, size in s.outputs}
    runners = {build_events.key_of(s.outputs[0][0]): s.runner for s in build.spawns if s.outputs}
    rows: list[list[pages.Cell]] = [
        [
            kernel.key.rpartition("/")[2],
            kernel.mnemonic,
            runners.get(kernel.key) or _WHERE[kernel.where],
            round(kernel.seconds, 2),
            round(kernel.start, 2),
            round(kernel.span, 2),
            sizes.get(kernel.key),
        ]
        for kernel in sorted(build.kernels, key=lambda kernel: -kernel.seconds)
    ]
    heads = ["Kernel", "Action", "Result from", "CPU s", "Began at s", "Took s", "Bytes"]
    return (
        "<p class=mild>CPU seconds of a result from a cache are those of its last compile on this "
        "machine, else an estimate. A group is compiled once for all its members.</p>"
        + pages.table(heads, rows)
    )


def _builds(history: Sequence[Mapping[str, Any]]) -> str:
    heads = ["Began", "Command", "Ended", "s", "Compiled", "Cached", "CPU s", "CPU s saved"]
    keys = ("exit", "seconds", "compiled", "cached", "compile_seconds", "saved_seconds")
    rows: list[list[pages.Cell]] = [
        [
            line["at"][:19].replace("T", " "),
            f"{line['command']} {' '.join(line['targets'])}"[:80],
            *(line[key] for key in keys),
        ]
        for line in reversed(history)
    ]
    return pages.table(heads, rows)
