# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Runs an action again, under strace, where nothing but its inputs is, and lists the files that it
looked for.

Bazel's own sandbox hides undeclared files of the checkout; files of the host are as visible there
as anywhere. Here each access to one is seen, also one that failed: the next host may have the file.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from tests.e2e.action_graph import Action

# Files outside of its inputs that an action may look at, and why they cannot reach an output.
HOST = {
    "/bin/sh": "starts the wrappers, which do nothing but start the locked programs",
    "/dev/null": "the kernel's",
    "/dev/urandom": "names of temporary files",
    "/proc/*": "the kernel's: the process itself, memory, processors",
    "/sys/devices/system/cpu*": "the kernel's: how many processors there are",
    "/sys/fs/cgroup*": "the kernel's: how many processors may be used",
    "/tmp*": "temporary files",  # noqa: S108  (it is a pattern)
    "/etc/ld.so.preload": "each loader's: what a machine's owner has in all processes",
    "/etc/localtime": "the time zone, which no output has",
    "/usr/lib/locale/*": "C.UTF-8, the locale that the actions of Python name",
    "/usr/share/locale*": "the same",
    "/usr/lib/x86_64-linux-gnu/gconv/*": "the same",
    # A zip of the standard library above the output root would be taken for Python's own: then no
    # action of Python starts, unless it is that very library.
    "*/lib/python3*.zip": "each Python's: it looks for one above its own folder",
    # The link flags decide all that clang would decide by them.
    "/etc/*-release": "clang asks which distribution it runs on",
    "/etc/debian_version": "the same",
    "/usr/lib/ssl/openssl.cnf": "hashlib asks how OpenSSL is configured; a sha256 is one",
    # pyelftools imports Python's debugger, and that what edits lines on a terminal.
    "*/inputrc": "keys",
    "*/.inputrc": "keys",
    "*/terminfo*": "terminals",
    "/etc/nsswitch.conf": "whose home has .inputrc",
    "/etc/passwd": "the same",
}
# The files of /bin/sh itself: its loader, libraries and their cache. Only the shell, not what it
# starts, may look at them.
_SHELL = ("/etc/ld.so.*", "/lib/*", "/lib64/*", "/usr/lib/*", "/nix/store/*")

_CALL = re.compile(r'^(\d+) +(\w+)\((?:AT_FDCWD, |\d+(?:<[^>]*>)?, )?"((?:[^"\\]|\\.)*)"(.*)$')


def _lay_out(action: Action, source: Path, folder: Path) -> None:
    # The files of a tool's tree of runfiles are among the inputs, but not their places in the tree.
    trees = {f"{path}.runfiles" for path in action.inputs}
    for path in action.inputs | {tree for tree in trees if (source / tree).is_dir()}:
        link = folder / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to((source / path).resolve())
    for path, text in action.parameter_files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text + "\n")
    for path in action.outputs:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)


def run(action: Action, source: Path, folder: Path, strace: list[str]) -> str:
    """Runs an action in a new `folder`, with inputs of `source`. Returns strace's text."""
    folder.mkdir(parents=True)
    _lay_out(action, source, folder)
    log = folder / "strace.log"
    result = subprocess.run(
        [*strace, "-f", "-qq", "-s", "4096", "-e", "trace=%file", "-o", str(log)]
        + [part for item in action.environment.items() for part in ("-E", "=".join(item))]
        + list(action.arguments),
        cwd=folder,
        env={},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, f"{action.mnemonic}: {result.stderr[-3000:]}"
    return log.read_text(errors="surrogateescape")


def is_script(path: Path) -> bool:
    """Whether the kernel starts the shell for a file, which is then in no line of the log."""
    with path.open("rb") as f:
        return f.read(9) == b"#!/bin/sh"


def looked_at(text: str, folder: Path) -> set[str]:
    """Returns the paths outside of `folder` that strace's text has, less those of the shell.

    A path is as the program wrote it: a relative one was looked for in `folder`, and a file there
    is an input.
    """
    found = set()
    shells: set[str] = set()
    for line in text.splitlines():
        call = _CALL.match(line)
        if not call:
            continue
        process, name, path, rest = call.groups()
        if name == "execve" and rest.endswith("= 0"):
            shells.discard(process)
            if path == "/bin/sh" or is_script(folder / path):
                shells.add(process)
        if not path.startswith("/") or Path(path).is_relative_to(folder):
            continue
        path = os.path.normpath(path)
        if process in shells and any(fnmatchcase(path, p) for p in _SHELL):
            continue
        found.add(path)
    return found


def _repositories(inputs: Mapping[str, Path]) -> set[Path]:
    """The folders of the external repositories that the inputs lie in."""
    found = set()
    for path, place in inputs.items():
        parts = Path(path).parts
        if parts[0] == "external" and place.parts[-len(parts) :] == parts:
            found.add(place.parents[len(parts) - 3])
    return found


def foreign(paths: set[str], inputs: Mapping[str, Path]) -> list[str]:
    """Returns the paths that are neither of the host's kernel and shell nor inputs' real places.

    A file that is looked for in an input's repository and is not there, as Python looks for its
    modules, is not there on any machine: repositories are locked.
    """
    real = {str(path) for path in inputs.values()}
    parents = {str(parent) for path in inputs.values() for parent in path.parents}
    repositories = _repositories(inputs)
    allowed = real | parents
    return sorted(
        path
        for path in paths
        if path not in allowed
        and not any(fnmatchcase(path, pattern) for pattern in HOST)
        and (os.path.lexists(path) or repositories.isdisjoint(Path(path).parents))
    )
