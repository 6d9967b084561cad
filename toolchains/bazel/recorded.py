# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Runs a build and records it: progress while it lasts, one line at its end.

Bazel is a child of this process, so that the line comes after Bazel's last one.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from toolchains.bazel import child, remote
from toolchains.bazel.messages import note
from toolchains.bazel.pace import LONG, PATIENCE
from toolchains.bazel.recording import Recording, command_at, folder_of
from toolchains.bazel.waiting import Waiting
from toolchains.locks.errors import LocksError

if TYPE_CHECKING:
    from toolchains.bazel.progress import Progress
    from toolchains.bazel.status_line import StatusLine

VARIABLE = "BAZELW_PROGRESS"
_MODES = ("auto", "always", "never")
_TICK = 1.0
_BETWEEN_LINES = 60.0
# Bazel's exit code where an executor or a cache server failed it.
_REMOTE_ERROR = 34


def wanted(environ: Mapping[str, str]) -> bool:
    """Whether builds are told of. Raises LocksError for an unknown setting."""
    mode = environ.get(VARIABLE) or "auto"
    if mode not in _MODES:
        raise LocksError(f"{VARIABLE} is {mode!r}; it may be {', '.join(_MODES)}")
    in_ci = environ.get("CI", "").lower() not in ("", "0", "false")
    return mode == "always" or (mode == "auto" and not in_ci)


def followed(environ: Mapping[str, str], executor: str) -> bool:
    """Whether builds are recorded: those that are told of, and, in CI as well, those that an
    executor may let wait for ever. Raises LocksError for an unknown setting."""
    return wanted(environ) or (bool(executor) and environ.get(VARIABLE) != "never")


def run(
    bazel: Sequence[str],
    arguments: Sequence[str],
    rc: str,
    workspace: str,
    environ: Mapping[str, str],
) -> None:
    """Runs the build and ends this process as Bazel ends.

    Returns, with nothing done, where the command is none that is recorded, or cannot be: an error
    of the cache folder is told of, and is not the build's.

    Args:
      bazel: the program and its own options.
      arguments: the command and what follows.
      rc: the text of rc files.
      workspace: the folder of the workspace.
      environ: the environment.
    """
    executor = remote.executor(arguments, rc)
    if command_at(arguments) is None or not followed(environ, executor):
        return
    recording = Recording(folder_of(workspace, environ))
    recorded = recording.command(arguments, rc)
    if recorded is None:
        return
    try:
        recording.start()
    except OSError as error:
        note(f"this build is not recorded: {error}; {VARIABLE}=never records none")
        return
    teller = _Teller(recording, environ, executor)
    program = shutil.which(bazel[0]) or bazel[0]
    try:
        status = child.run([program, *bazel[1:], *recorded], teller.tick, _TICK)
    finally:
        teller.close()
    try:
        line = finish(recording, environ)
    except (OSError, EOFError, ValueError, KeyError) as error:
        # Bazel ended early: wrong options, or it was killed.
        line = f"this build is not recorded: {error!r}" if status == 0 else ""
        recording.drop()
    if line and wanted(environ):
        note(line)
    if executor and os.waitstatus_to_exitcode(status) == _REMOTE_ERROR:
        note(
            'the executor failed, as Bazel says above; docs/scale.md, "When the executor fails", '
            "has what to do"
        )
    child.end_as(status)


def finish(recording: Recording, environ: Mapping[str, str]) -> str:
    """Keeps the record of a build that has ended and returns its closing line, "" for none.

    Nothing is kept of a build that executed nothing: it would hide the one before it. Raises
    OSError, EOFError, ValueError or KeyError for records that are not whole.
    """
    # Modules that a build without any work does not wait for.
    from toolchains.bazel import events, summary
    from toolchains.bazel import profile as build_profile
    from toolchains.bazel.cost import Costs
    from toolchains.bazel.recording import read_seconds, write_seconds

    of_build = events.read(recording.events)
    if summary.executed_nothing(of_build):
        recording.drop()
        return ""
    profile = build_profile.read(recording.profile)
    # Outputs may go before somebody looks at the record.
    plan = events.plan(of_build)
    costs = Costs(read_seconds(environ) if of_build.compiles else {}, plan)
    expected = {events.key_of(output): costs.of(output) for output in of_build.compiles}
    recording.write_plan(dataclasses.replace(plan, seconds=expected))
    found = summary.kernels(of_build, profile, costs)
    ran = {kernel.key: kernel.seconds for kernel in found if kernel.where == "here"}
    if ran:
        write_seconds(ran, environ)
    line = summary.history_line(of_build, profile, found)
    recording.keep(line)
    return summary.closing_line(line)


class _Teller:
    """Tells of progress: on a terminal in its last line, elsewhere in a line a minute. Of kernels
    that may take long it tells before they are compiled, and of an executor that it is waited for:
    a build that waits for long it has ended.
    """

    def __init__(self, recording: Recording, environ: Mapping[str, str], executor: str) -> None:
        self._recording = recording
        self._environ = environ
        self._begun = self._told = time.monotonic()
        self._is_long = False
        is_terminal = sys.stderr.isatty() and wanted(environ)
        self._is_terminal = is_terminal
        self._shown = is_terminal or environ.get(VARIABLE) == "always"
        self._progress: Progress | None = None
        self._status: StatusLine | None = None
        self._waiting: Waiting | None = None
        self._waits = False
        if executor:
            from toolchains.locks import web  # slow to import

            self._waiting = Waiting(web.shown(executor))

    def tick(self) -> bool:
        """Tells of the build as it is now. Returns whether to interrupt it."""
        now = time.monotonic()
        if not self._shown and self._waiting is None:
            return False
        if self._progress is None:
            # Modules that a short build does not wait for.
            from toolchains.bazel.progress import Progress
            from toolchains.bazel.recording import read_seconds
            from toolchains.bazel.status_line import StatusLine

            self._progress = Progress(self._recording.events, lambda: read_seconds(self._environ))
            self._status = StatusLine() if self._is_terminal else None
        self._progress.read(now)
        waits, is_over = self._wait(self._progress, now)
        if waits and not self._waits and self._status is None:
            note(waits)
        self._waits = bool(waits)
        if is_over:
            note("the build is ended, as an interruption would end it")
        if self._shown:
            self._show(self._progress, waits, now)
        return is_over

    def _wait(self, progress: Progress, now: float) -> tuple[str, bool]:
        """Returns what to say of an executor that is waited for, and whether that is to end."""
        if self._waiting is None:
            return "", False
        waits = self._waiting.line(progress.actions, progress.works_here, now)
        return waits, self._waiting.is_over(now)

    def _show(self, progress: Progress, waits: str, now: float) -> None:
        if not self._is_long and progress.whole() >= LONG:
            self._is_long = True
            self._told = now - _BETWEEN_LINES
        if now - self._begun < PATIENCE and not self._is_long and not waits:
            return
        line = waits or progress.line(now)
        if self._status is not None:
            self._status.show(f"bazelw: {line}" if line else "")
        elif line and not waits and now - self._told >= _BETWEEN_LINES:
            note(line)
            self._told = now

    def close(self) -> None:
        if self._status is not None:
            self._status.close()
