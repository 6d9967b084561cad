# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Another Debian release: its programs, and roots made with its bwrap, all without privileges."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolchains.bazel import vendor
from toolchains.debian import fetch
from toolchains.locks import store

LIBRARIES = "usr/lib/x86_64-linux-gnu"
# Of the user inside: none that this machine has.
USER = "4321"


def tree() -> Path:
    """The unpacked system, @other_system."""
    return Path(os.environ["OTHER_SYSTEM"]).resolve().parent


def command(program: str, at: str | Path | None = None) -> list[str]:
    """Starts a program of the system with its own loader and libraries, on any system.

    `at`: where the tree is seen from; by default where it lies.
    """
    root = Path(at or tree())
    loader = ["ld-linux-x86-64.so.2", "--library-path", str(root / LIBRARIES)]
    loader[0] = str(root / LIBRARIES / loader[0])
    return [*loader, "--argv0", program, str(root / "usr/bin" / program)]


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def etc(folder: Path, home: str, name: str) -> Path:
    """Makes an /etc with the one user that there is inside."""
    folder.mkdir(parents=True)
    (folder / "passwd").write_text(f"{name}:x:{USER}:{USER}::{home}:/bin/sh\n")
    (folder / "group").write_text(f"{name}:x:{USER}:\n")
    (folder / "hosts").write_text("127.0.0.1 localhost\n")
    (folder / "nsswitch.conf").write_text("passwd: files\nhosts: files\n")
    return folder


def root(mounts: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Returns the command that runs what is appended to it in a root made of `mounts`.

    `mounts` are options of bwrap. There are no privileges, no network and no processes but those
    started inside, all of which end with the first. Only `environment` is set.
    """
    variables = [part for item in environment.items() for part in ("--setenv", *item)]
    return [
        *command("bwrap"),
        *("--unshare-all", "--die-with-parent", "--uid", USER, "--gid", USER, "--tmpfs", "/"),
        *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),  # noqa: S108  (of its own)
        *mounts,
        "--clearenv",
        *variables,
    ]


def unpack(group: str, folder: Path) -> Path:
    """Unpacks a group of locked packages."""
    shelf = store.Store(os.environ)
    for file in fetch.fetch(group).values():
        subprocess.run(["dpkg-deb", "-x", str(shelf.path(file)), str(folder)], check=True)
    return folder


def locked_files() -> Path:
    """Returns the folder that has every locked file, named by its sha256, fetching what it lacks.

    It has the layout that AITER_ATTN_MIRROR wants.
    """
    shelf = store.Store(os.environ)
    failed = shelf.fetch(vendor.locked(os.environ))
    assert not failed, store.tell(failed)
    return shelf.folder
