# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The program behind ./bazelw; its docstring there is the user's manual."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence

from toolchains.bazel import rc_files, recorded, remote, sandbox
from toolchains.bazel.messages import Progress, note
from toolchains.locks.environment import cache_folder
from toolchains.locks.errors import LocksError

# Modules of a set-up, a relock and vendoring are imported there: each build waits for this one.

HERE = pathlib.Path(__file__).absolute().parent
TOP = HERE.parent.parent
MODES = ("auto", "bazelisk", "debian")
_MORE = "BAZELW_BAZELRC"
RELOCKS = ("bazel", "debian", "pypi")
_WORKSPACE_FILES = ("MODULE.bazel", "REPO.bazel", "WORKSPACE", "WORKSPACE.bazel")


def relock(names: Sequence[str]) -> None:
    """Writes the locks named anew: all when none is. Prints what changed."""
    unknown = [n for n in names if n not in RELOCKS]
    if unknown:
        raise LocksError(f"--relock {unknown[0]}: there are {', '.join(RELOCKS)}")
    from toolchains.bazel import setup
    from toolchains.debian import relock as debian_relock
    from toolchains.pypi import relock as pypi_relock

    chosen = names or RELOCKS[1:]
    changes = []
    if "debian" in chosen:
        changes += debian_relock.relock()
    elif "bazel" in chosen:
        changes += debian_relock.relock([setup.GROUP])
    if "pypi" in chosen:
        changes += pypi_relock.relock()
    for line in changes or ["nothing changed"]:
        note(line)


def vendor_locked(folders: Sequence[str]) -> None:
    """Writes every locked file to a folder."""
    if len(folders) != 1:
        raise LocksError(f"--vendor: got {len(folders)} arguments, want one folder")
    from toolchains.bazel import vendor
    from toolchains.locks import store

    progress = Progress()
    folder = pathlib.Path(folders[0]).absolute()
    count, size = vendor.vendor(folder, os.environ, progress.show)
    progress.clear()
    note(
        f"{folder} holds {count} locked files, {size / 1e6:.0f} MB; builds take them from there "
        f"with {store.MIRROR}={folder}, or the URL that it is served at"
    )


def _bazel(environ: dict[str, str]) -> list[str]:
    if environ.get("BAZELW_BAZEL"):
        return [environ["BAZELW_BAZEL"]]
    mode = environ.get("BAZELW_MODE", "auto")
    if mode not in MODES:
        raise LocksError(f"BAZELW_MODE is {mode!r}; it may be {', '.join(MODES)}")
    bazelisk = shutil.which("bazelisk")
    if mode == "bazelisk" and not bazelisk:
        raise LocksError("BAZELW_MODE is bazelisk, but there is no bazelisk on PATH: install it")
    if bazelisk and mode != "debian":
        return [bazelisk]
    # The checkout is left as it is: byte code goes where the set-up is.
    sys.pycache_prefix = os.path.join(cache_folder(environ), "bytecode")
    sys.dont_write_bytecode = False
    from toolchains.bazel import setup

    version = (TOP / ".bazelversion").read_text(encoding="utf-8").strip()
    return [
        *setup.debian_bazel(version, str(HERE), environ),
        *sandbox.settings(str(HERE)),
        *_more_settings(environ),
    ]


def _more_settings(environ: Mapping[str, str]) -> list[str]:
    """Returns the option that makes Bazel read what a machine needs beyond .bazelrc."""
    file = environ.get(_MORE)
    if not file:
        return []
    if not os.path.isabs(file) or not os.path.isfile(file):
        raise LocksError(f"{_MORE} is {file!r}; want the absolute path of an rc file")
    return [f"--bazelrc={file}"]


def _workspace(folder: pathlib.Path) -> pathlib.Path | None:
    """Returns the workspace that a folder is in."""
    for found in (folder, *folder.parents):
        if any((found / name).is_file() for name in _WORKSPACE_FILES):
            return found
    return None


def main(arguments: Sequence[str]) -> None:
    """Replaces this process by Bazel, or waits for a build that it records: recorded.py.

    Exits 1 with one message where Bazel cannot be run.
    """
    # A request to end is an interruption like Ctrl-C: unfinished work is tidied up.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if arguments[:1] == ["--relock"]:
            return relock(arguments[1:])
        if arguments[:1] == ["--vendor"]:
            return vendor_locked(arguments[1:])
        bazel = _bazel(dict(os.environ))
        text = rc_files.text(str(TOP), [*bazel[1:], *arguments], os.path.expanduser("~"))
        remote.check(arguments, text, debian=len(bazel) > 1)
        # From a folder outside any workspace, the one that bazelw lies in is meant.
        workspace = _workspace(pathlib.Path.cwd())
        if not workspace:
            os.chdir(TOP)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        recorded.run(bazel, arguments, text, str(workspace or TOP), os.environ)
        command = [*bazel, *arguments]
        os.execv(shutil.which(command[0]) or command[0], command)
    except (LocksError, OSError) as e:
        sys.exit(f"bazelw: error: {e}")
    except KeyboardInterrupt:
        sys.exit("bazelw: interrupted; nothing half-made is left behind")
