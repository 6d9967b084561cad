# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Reads Bazel's profile: the actions of a build and where their time went.

The file is one gzipped JSON object with an event a line.
"""

from __future__ import annotations

import bisect
import dataclasses
import gzip
import json
from collections.abc import Iterator
from typing import Any

_ACTION = "action processing"
_REMOTE = "remote action execution"
_CRITICAL = "critical path component"


@dataclasses.dataclass(frozen=True)
class Action:
    """An action that Bazel ran, or whose result a cache had.

    output    its primary output, "" where it has none
    start     seconds since the build began
    seconds   until it was completed, with all that it waited for
    ran       seconds that its command ran; 0 where none did
    remote    whether that was on another machine
    """

    mnemonic: str
    name: str
    output: str
    start: float
    seconds: float
    ran: float
    remote: bool


@dataclasses.dataclass(frozen=True)
class Profile:
    """critical_path: (what, seconds), in the order in which they ran."""

    actions: list[Action]
    critical_path: list[tuple[str, float]]


def _lines(path: str) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            text = line.strip().rstrip(",")
            if not text.startswith('{"cat"'):
                continue
            event = json.loads(text)
            if "dur" in event:
                yield event


def read(path: str) -> Profile:
    """Returns what a profile says. Raises OSError, EOFError or ValueError for no profile."""
    actions, path_events = [], []
    ran: dict[int, list[tuple[int, int, bool]]] = {}
    for event in _lines(path):
        if event["cat"] == _ACTION and event.get("args", {}).get("mnemonic"):
            actions.append(event)
        elif event["name"] == "subprocess.run" or event["cat"] == _REMOTE:
            span = (event["ts"], event["dur"], event["cat"] == _REMOTE)
            ran.setdefault(event["tid"], []).append(span)
        elif event["cat"] == _CRITICAL:
            path_events.append(event)
    for of_thread in ran.values():
        of_thread.sort()
    found = []
    for event in actions:
        start, end = event["ts"], event["ts"] + event["dur"]
        of_thread = ran.get(event["tid"], [])
        first, last = (bisect.bisect_left(of_thread, (at,)) for at in (start, end))
        spans = of_thread[first:last]
        found.append(
            Action(
                mnemonic=event["args"]["mnemonic"],
                name=event["name"],
                output=event.get("out", ""),
                start=start / 1e6,
                seconds=event["dur"] / 1e6,
                ran=sum(span[1] for span in spans) / 1e6,
                remote=any(span[2] for span in spans),
            )
        )
    path_events.sort(key=lambda event: event["ts"])
    return Profile(found, [(event["name"], event["dur"] / 1e6) for event in path_events])
