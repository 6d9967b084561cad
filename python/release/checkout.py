# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Facts of git about the checkout that is released."""

from __future__ import annotations

import dataclasses
import datetime
import subprocess
from pathlib import Path

from python.release.errors import ReleaseError


@dataclasses.dataclass(frozen=True)
class Commit:
    """The commit that is released, and files that differ from it.

    time: the committer's, in seconds since 1970; all documents bear it
    modified: files that differ from the commit; empty unless that was asked for
    """

    sha: str
    time: int
    modified: tuple[str, ...] = ()

    def date(self) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(self.time, datetime.timezone.utc)


def git(root: Path, *arguments: str) -> str:
    """The output of git. Raises ReleaseError with its complaint."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise ReleaseError("git is not on PATH; install it") from error
    if done.returncode:
        raise ReleaseError(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def head(root: Path, allow_modified: bool = False) -> Commit:
    """The commit that is checked out.

    Raises ReleaseError where files differ from it, unless that is allowed, or where there is none.
    """
    try:
        sha, time = git(root, "log", "-1", "--format=%H %ct").split()
        # From the root: the names are those that the message shows.
        status = git(root, "status", "--porcelain", "--untracked-files=normal", "-z")
    except ReleaseError as error:
        raise ReleaseError(f"{root} has no commit to release: {error}") from error
    modified = _names(status)
    if modified and not allow_modified:
        shown = ", ".join(modified[:5]) + (", ..." if len(modified) > 5 else "")
        raise ReleaseError(
            f"{len(modified)} files differ from commit {sha[:12]}: {shown}. Commit them or put "
            "them away; or release, with --dirty, a state that cannot be built again"
        )
    return Commit(sha, int(time), modified)


def _names(status: str) -> tuple[str, ...]:
    """Of `git status --porcelain -z`: "XY NAME", after a renamed one its old name."""
    fields = iter(status.split("\0"))
    names = []
    for field in fields:
        if field:
            names.append(field[3:])
        if field[:1] in ("R", "C"):
            next(fields)
    return tuple(sorted(names))
