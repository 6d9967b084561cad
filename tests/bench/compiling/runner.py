# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Runs actions outside of Bazel, by ninja, and counts their time and memory."""

from __future__ import annotations

import dataclasses
import os
import shlex
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.e2e.action_graph import Action

_LOG_TAIL = 4000


class FailedError(Exception):
    """An action failed; the message has its output."""


@dataclasses.dataclass(frozen=True)
class Usage:
    """The cost of a run, all of its processes together."""

    cpu: float  # seconds, of user and system
    wall: float  # seconds
    memory: int  # bytes, of the greatest process
    size: int  # bytes of what was wanted


@dataclasses.dataclass(frozen=True)
class Runner:
    ninja: Path
    jobs: int
    sources: Path  # the tree that is built
    external: Path  # the folder of all other repositories

    def run(self, root: Path, actions: Sequence[Action], wanted: Sequence[str]) -> Usage:
        """Runs actions in a new folder, from nothing. Raises FailedError."""
        self._prepare(root, actions)
        (root / "build.ninja").write_text(ninja_file(actions), "utf-8")
        command = [str(self.ninja), "-C", str(root), "-j", str(self.jobs), *wanted]
        log = root / "log"
        start = time.monotonic()
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
            _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise FailedError(log.read_text("utf-8", "replace")[-_LOG_TAIL:])
        return Usage(
            cpu=usage.ru_utime + usage.ru_stime,
            wall=wall,
            memory=usage.ru_maxrss * 1024,
            size=sum((root / path).stat().st_size for path in wanted),
        )

    def _prepare(self, root: Path, actions: Sequence[Action]) -> None:
        """Makes the folder that actions run in: with what they read, by the names they know."""
        root.mkdir(parents=True)
        read = {path.partition("/")[0] for action in actions for path in action.inputs}
        for name in sorted(read - {"bazel-out", "external"}):
            (root / name).symlink_to(self.sources / name)
        (root / "external").symlink_to(self.external)
        for action in actions:
            if action.content is not None:
                self._write(root / action.outputs[0], action.content)

    def _write(self, path: Path, content: str) -> None:
        """A file that Bazel writes; it may be a program that looks for its runfiles."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
        path.chmod(0o755)
        path.with_name(path.name + ".runfiles").symlink_to(self.external)


def ninja_file(actions: Iterable[Action]) -> str:
    """The text of a build file with a rule per action that runs something."""
    lines = []
    made = {path for action in actions for path in action.outputs}
    for number, action in enumerate(a for a in actions if a.content is None):
        settings = [f"{name}={value}" for name, value in sorted(action.environment.items())]
        command = shlex.join(["env", "-i", *settings, *action.arguments])
        if action.parameter_files:
            raise ValueError(f"{action.outputs[0]}: parameter files are not run here")
        lines += [f"rule r{number}", f"  command = {command.replace('$', '$$')}"]
        outputs = " ".join(_escaped(path) for path in action.outputs)
        inputs = "".join(" " + _escaped(path) for path in sorted(action.inputs & made))
        lines += [f"build {outputs}: r{number}{inputs}", ""]
    return "\n".join(lines)


def _escaped(path: str) -> str:
    return path.replace("$", "$$").replace(" ", "$ ").replace(":", "$:")
