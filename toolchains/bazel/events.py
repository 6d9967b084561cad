# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Reads the file of Bazel's --build_event_json_file: one JSON object a line, while it grows, too.

Bazel 7 says there which actions were completed, and neither how long they took nor whether a cache
had their results: the profile has the former, totals the latter.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from typing import Any
from urllib.parse import unquote, urlsplit

from toolchains.locks import toml

# Actions that compile a kernel, or several up to optimised IR.
INSTANCES = ("HipCodeObject", "Cubin")
GROUP = "HipCompileGroup"
# Actions on the headers, the flags and the compiler of many kernels.
_RECIPES = ("CodeObjectRecipe", "CubinRecipe")
# The list of a launch table's kernels, which kernel_plan.bzl has written at once.
PLAN = ".plan.json"
_OF_INTEREST = (
    PLAN.encode(),
    *(f'"type":"{mnemonic}"'.encode() for mnemonic in (*INSTANCES, GROUP, *_RECIPES)),
)
_ACTION = b'{"id":{"actionCompleted"'
_KINDS = tuple(
    b'{"id":{"%s"' % kind
    for kind in (b"started", b"pattern", b"optionsParsed", b"buildFinished", b"buildMetrics")
)
_OUTPUT = re.compile(r"bazel-out/[^/]+/bin/(?:external/[^/]+/)?")


def key_of(output: str) -> str:
    """Names a compile by its primary output: the same in any checkout and configuration."""
    return _OUTPUT.sub("", output, count=1)


@dataclasses.dataclass(frozen=True)
class Compile:
    """A completed action of a kernel.

    output  its primary output, from the execution root
    file    where that is, if it is on this machine
    """

    output: str
    mnemonic: str
    label: str
    file: str


class Events:
    """The events of a build, as far as they were read.

    started, finished, metrics  these events' contents; empty until they have come
    patterns                    the targets asked for
    options                     of the command line and the rc files
    compiles                    of kernels, by output, as they were completed
    plans                       files that list the kernels of the build
    recipes                     outputs: what changed that many kernels are made by
    actions                     how many were completed, of all kinds
    """

    def __init__(self) -> None:
        self.started: dict[str, Any] = {}
        self.finished: dict[str, Any] = {}
        self.metrics: dict[str, Any] = {}
        self.patterns: list[str] = []
        self.options: list[str] = []
        self.compiles: dict[str, Compile] = {}
        self.plans: list[str] = []
        self.recipes: set[str] = set()
        self.actions = 0

    def add(self, line: bytes) -> None:
        """Takes a whole line of the file. Raises ValueError for what is none."""
        if line.startswith(_ACTION):
            self.actions += 1
            if any(of_interest in line for of_interest in _OF_INTEREST):
                self._add_action(json.loads(line))
        elif line.startswith(_KINDS):
            event = json.loads(line)
            (kind,) = event["id"]
            if kind == "started":
                self.started = event["started"]
            elif kind == "pattern":
                self.patterns = event["id"]["pattern"]["pattern"]
            elif kind == "optionsParsed":
                self.options = event["optionsParsed"].get("cmdLine", [])
            elif kind == "buildFinished":
                self.finished = event["finished"]
            else:
                self.metrics = event["buildMetrics"]

    def _add_action(self, event: dict[str, Any]) -> None:
        action, output = event["action"], event["id"]["actionCompleted"]["primaryOutput"]
        if not action.get("success"):
            return
        file = unquote(urlsplit(action["primaryOutput"]["uri"]).path)
        if action["type"] in (*INSTANCES, GROUP):
            label = action.get("label", "")
            self.compiles[output] = Compile(output, action["type"], label, file)
        elif action["type"] in _RECIPES:
            self.recipes.add(output)
        elif output.endswith(PLAN):
            self.plans.append(file)

    @property
    def runners(self) -> dict[str, int]:
        """Actions by where their results came from: "disk cache hit", "linux-sandbox"."""
        counts = self.metrics.get("actionSummary", {}).get("runnerCount", [])
        return {entry["name"]: int(entry["count"]) for entry in counts if entry["name"] != "total"}

    def processor_seconds(self, mnemonic: str) -> float | None:
        """Processor time of all commands of a mnemonic; None where Bazel does not say it."""
        for entry in self.metrics.get("actionSummary", {}).get("actionData", []):
            if entry["mnemonic"] == mnemonic:
                return sum(
                    float(entry.get(part, "0s").removesuffix("s"))
                    for part in ("userTime", "systemTime")
                )
        return None


class Follower:
    """Reads the file of events as it grows. It need not exist yet."""

    def __init__(self, path: str) -> None:
        self.events = Events()
        self._path = path
        self._at = 0

    def read(self) -> Events:
        """Takes the lines that have been completed since the last call."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._at)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._at += len(line)
                    self.events.add(line)
        except FileNotFoundError:
            pass
        return self.events


def read(path: str) -> Events:
    """Returns the events of a file. Raises OSError, or ValueError for a file of something else."""
    events = Events()
    with open(path, "rb") as file:
        for line in file:
            events.add(line)
    if not events.started:
        raise ValueError(f"{path}: no build's events; want a file of --build_event_json_file")
    return events


@dataclasses.dataclass(frozen=True)
class Plan:
    """The kernels of a build, and how long their compiles take.

    kernels  output -> the first output of its compile group, "" where it has none
    recipes  output -> the recipe that it is made by
    figures  kind of kernel -> figures of compile_cost.toml
    seconds  events.key_of an output -> processor time that was expected before the build; empty
             while it runs
    """

    kernels: dict[str, str] = dataclasses.field(default_factory=dict)
    recipes: dict[str, str] = dataclasses.field(default_factory=dict)
    figures: dict[str, Any] = dataclasses.field(default_factory=dict)
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)


def plan(events: Events) -> Plan:
    """Reads the plans of a build that this machine has. Raises ValueError."""
    found = Plan()
    for file in events.plans:
        try:
            with open(file, encoding="utf-8") as text:
                read = json.load(text)
            found.kernels.update(read["kernels"])
            outputs = (output for output, _ in read["kernels"])
            found.recipes.update(zip(outputs, read["recipes"], strict=True))
            if read["figures"]:
                figures = os.path.join(file.partition("/bazel-out/")[0], read["figures"])
                with open(figures, encoding="utf-8") as text:
                    found.figures.update(toml.loads(text.read()))
        except OSError:
            continue  # Made on another machine, or by a build whose outputs have gone.
    return found
