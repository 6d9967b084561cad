# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Commands that run on this machine now: of compiles, by the processes that write their outputs.

Bazel says of an action when it is completed, and not when it begins.
"""

from __future__ import annotations

import os
from collections.abc import Container

_TICKS = os.sysconf("SC_CLK_TCK")
# Places in /proc/PID/stat after the name in parentheses.
_PARENT, _FIRST_TIME, _LAST_TIME = 1, 11, 15


def has_children(process: int) -> bool:
    """Whether a process has started others that still run: Bazel's server has, for commands."""
    for other in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{other}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # It has ended.
        if int(fields[_PARENT]) == process:
            return True
    return False


def seconds_by_output(outputs: Container[str]) -> dict[str, float]:
    """Returns the processor time so far of each command that has one of the outputs as an argument.

    It is that of the command with all processes that it has started, alive or not.
    """
    parents: dict[str, str] = {}
    seconds: dict[str, float] = {}
    written: dict[str, str] = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
            with open(f"/proc/{process}/cmdline", encoding="utf-8", errors="replace") as file:
                arguments = file.read().split("\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # It has ended, or is another user's.
        parents[process] = fields[_PARENT]
        seconds[process] = sum(map(int, fields[_FIRST_TIME:_LAST_TIME])) / _TICKS
        found = [word for word in (a.rpartition("=")[2] for a in arguments) if word in outputs]
        if found:
            written[process] = found[0]
    total: dict[str, float] = {}
    for process, taken in seconds.items():
        # The sandbox has the command's arguments, too: the topmost process counts.
        above, top = process, ""
        while above in parents:
            top = written.get(above, top)
            above = parents[above]
        if top:
            total[top] = total.get(top, 0.0) + taken
    return total
