# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Records of builds: Bazel's events, execution log and profile of a workspace's last build.

A workspace has a folder of its own in bazelw's cache folder:

    running-PID/   of a build that runs now, by the bazelw of that number
    last/          of the last one that executed anything: events.json, execution.zst, profile.gz
                   and plan.json, the list of its kernels
    history.jsonl  a line for each of the last _MOST_BUILDS of these

Nothing is written to the checkout. `seconds.json`, beside these folders, is of all workspaces.
"""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolchains.locks.environment import cache_folder

if TYPE_CHECKING:
    from toolchains.bazel.events import Plan

COMMANDS = ("build", "test")
_SWITCHES = ("--batch", "--home_rc", "--ignore_all_rc_files", "--system_rc", "--workspace_rc")
# Of an option: the file in the folder of a build.
FILES = {
    "--build_event_json_file": "events.json",
    "--execution_log_compact_file": "execution.zst",
    "--profile": "profile.gz",
}
PLAN = "plan.json"
_RUNNING = "running-"
# Bazel takes one of them in a build.
_OTHER_LOGS = ("--execution_log_json_file", "--execution_log_binary_file")
_OPTIONS = (
    "--build_event_publish_all_actions",
    # Else Bazel uploads the files that events name, its own logs too, to a remote cache.
    "--nobuild_event_json_file_path_conversion",
    "--experimental_profile_include_primary_output",
    # Short events are not merged: a result that a cache has takes a millisecond.
    "--noslim_profile",
)
_MOST_BUILDS = 1000
_MOST_SECONDS = 50_000


def root(environ: Mapping[str, str]) -> str:
    return os.path.join(cache_folder(environ), "builds")


def folder_of(workspace: str, environ: Mapping[str, str]) -> str:
    """Returns the folder of the records of a workspace, which need not exist yet."""
    key = hashlib.sha256(os.path.realpath(workspace).encode()).hexdigest()[:16]
    return os.path.join(root(environ), key)


def command_at(arguments: Sequence[str]) -> int | None:
    """Returns the index of a command that is recorded; None where there is none.

    `run` is not: it is the program that people want, which may well be the report of a build.
    """
    for at, argument in enumerate(arguments):
        if argument in COMMANDS:
            return at
        # The value of an option may come after it, and look like a command.
        if "=" not in argument and not argument.startswith("--no") and argument not in _SWITCHES:
            return None
    return None


def _options_in(words: Sequence[str]) -> set[str]:
    until = list(words).index("--") if "--" in words else len(words)
    return {word.partition("=")[0] for word in words[:until]}


@dataclasses.dataclass(frozen=True)
class Recording:
    """The record of a build that is about to run."""

    folder: str

    @property
    def running(self) -> str:
        return os.path.join(self.folder, f"{_RUNNING}{os.getpid()}")

    @property
    def events(self) -> str:
        return self._file("--build_event_json_file")

    @property
    def profile(self) -> str:
        return self._file("--profile")

    def _file(self, option: str) -> str:
        return os.path.join(self.running, FILES[option])

    def command(self, arguments: Sequence[str], rc: str) -> list[str] | None:
        """Returns Bazel's arguments with those that record.

        None where the arguments, or `rc`, the text of rc files, ask for one of these files
        somewhere else: Bazel writes each of them once, so that the build is not recorded.
        """
        at = command_at(arguments)
        given = _options_in(arguments) | _options_in(rc.split())
        if at is None or given & {*FILES, *_OTHER_LOGS}:
            return None
        options = [*_OPTIONS, *(f"{option}={self._file(option)}" for option in FILES)]
        return [*arguments[: at + 1], *options, *arguments[at + 1 :]]

    def start(self) -> None:
        """Makes the folder of the build. Raises OSError.

        Another build may run, or wait for Bazel; folders of those that were killed go.
        """
        for stale in glob.glob(f"{glob.escape(self.folder)}/{_RUNNING}*"):
            process = stale.rpartition("-")[2]
            if process == str(os.getpid()) or not os.path.exists(f"/proc/{process}"):
                shutil.rmtree(stale, ignore_errors=True)
        os.makedirs(self.running)

    def write_plan(self, plan: Plan) -> None:
        """Keeps the build's list of kernels. Raises OSError."""
        _replace(os.path.join(self.running, PLAN), json.dumps(dataclasses.asdict(plan)))

    def keep(self, line: Mapping[str, Any]) -> None:
        """Makes the build the last one and adds its line to the history. Raises OSError."""
        last = os.path.join(self.folder, "last")
        shutil.rmtree(last, ignore_errors=True)
        os.rename(self.running, last)
        lines = [*history(self.folder), dict(line)][-_MOST_BUILDS:]
        text = "".join(json.dumps(one) + "\n" for one in lines)
        _replace(os.path.join(self.folder, "history.jsonl"), text)

    def drop(self) -> None:
        shutil.rmtree(self.running, ignore_errors=True)


def history(folder: str) -> list[dict[str, Any]]:
    """Returns the builds of a workspace, the earliest first. A damaged line is left out."""
    lines = []
    try:
        with open(os.path.join(folder, "history.jsonl"), encoding="utf-8") as file:
            for line in file:
                with contextlib.suppress(ValueError):
                    lines.append(json.loads(line))
    except OSError:
        pass  # The first build.
    return lines


def read_seconds(environ: Mapping[str, str]) -> dict[str, float]:
    """Returns the seconds of processor time that each compile took when it last ran here."""
    try:
        with open(os.path.join(root(environ), "seconds.json"), encoding="utf-8") as file:
            return dict(json.load(file))
    except (OSError, ValueError, TypeError):
        return {}  # None yet, or damaged: what is compiled from now on is recorded anew.


def write_seconds(new: Mapping[str, float], environ: Mapping[str, str]) -> None:
    """Adds to the recorded seconds; those recorded the longest ago go. Raises OSError."""
    kept = {key: value for key, value in read_seconds(environ).items() if key not in new}
    every = {**kept, **{key: round(value, 2) for key, value in new.items()}}
    text = json.dumps(dict([*every.items()][-_MOST_SECONDS:]))
    _replace(os.path.join(root(environ), "seconds.json"), text)


def _replace(path: str, text: str) -> None:
    scratch = f"{path}.{os.getpid()}"
    try:
        with open(scratch, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(scratch, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(scratch)
