# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Projects for CMake; //aiter:dist, unpacked, and the project cmake/ that is built with it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

VERSION = "0.1.0"


def run(*command: object, **kwargs: object) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "RUNFILES": str(Path.cwd().parent)}
    return subprocess.run([*map(str, command)], capture_output=True, text=True, env=environment,
                          **kwargs)  # fmt: skip


def unpack(folder: Path) -> Path:
    """The prefix, in the folder."""
    shutil.unpack_archive(os.environ["DIST"], folder)
    return folder / f"aiter_attn-{VERSION}"


def configure(folder: Path, project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    compilers = {Path(path).name: Path(path).absolute() for path in os.environ["CC"].split()}
    return run(
        Path(os.environ["CMAKE"]).absolute(), "-G", "Ninja", "-S",
        project.absolute(), "-B", folder,
        f"-DCMAKE_MAKE_PROGRAM={Path(os.environ['NINJA']).absolute()}",
        f"-DCMAKE_C_COMPILER={compilers['cc']}", f"-DCMAKE_CXX_COMPILER={compilers['c++']}",
        "-DCMAKE_CXX_STANDARD=17", *options,
    )  # fmt: skip


def ninja(folder: Path) -> subprocess.CompletedProcess[str]:
    return run(Path(os.environ["NINJA"]).absolute(), "-C", folder)


def configure_with_dist(
    folder: Path, prefix: Path, *options: str
) -> subprocess.CompletedProcess[str]:
    project = Path(os.environ["PROJECT"]).parent
    return configure(folder, project, f"-DCMAKE_PREFIX_PATH={prefix}", *options)


def build(folder: Path, prefix: Path, static: str) -> None:
    """All programs and libraries of the project, linked statically ("ON") or not."""
    options = (f"-DAITER_STATIC_LINK={static}", "-DWANTED_VERSION=0.1")
    done = configure_with_dist(folder, prefix, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    done = ninja(folder)
    assert done.returncode == 0, done.stdout + done.stderr
