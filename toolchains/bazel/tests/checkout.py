# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""For tests that run bazelw: a copy of it with its own cache, and a local archive.

Needs a Debian host for apt-helper and dpkg-deb, as the set-up itself does. DEBS lists the files
of the lock's group bazel, each named by its sha256, relative to TEST_SRCDIR.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest

from toolchains.bazel import setup
from toolchains.debian import lock

TOP = pathlib.Path(setup.__file__).absolute().parent.parent.parent
FILES = ("*.bazelrc", "*.py", "*.toml", "*.json")

ON_DEBIAN = pytest.mark.skipif(
    not all(map(shutil.which, ("apt-get", "dpkg-deb"))), reason="this is no Debian machine"
)


def locked() -> tuple[lock.Package, ...]:
    """Returns the packages of the committed lock that Bazel is made of."""
    return lock.parse(lock.LOCK.read_text(), "lock.json")[setup.GROUP].packages


def make_archive(root: pathlib.Path) -> pathlib.Path:
    """Fills a folder with the locked packages at their pool paths. Returns the folder."""
    runfiles = pathlib.Path(os.environ.get("TEST_SRCDIR", "/"))
    debs = (runfiles / os.environ["DEBS"].split()[0]).parent
    for package in locked():
        place = root / package.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to((debs / f"{package.sha256}.deb").resolve())
    return root


class Checkout:
    """A copy of bazelw and what it reads, with its own cache folder and archive."""

    def __init__(self, root: pathlib.Path, archive: pathlib.Path) -> None:
        self.root = root / "checkout"
        self.cache = root / "cache"
        self.archive = f"file://{archive}"
        # Programs read the files of versions/, too.
        patterns = {"versions": ("*.bzl",)}
        for folder in ("bazel", "debian", "locks", "npm", "pypi", "versions"):
            target = self.root / "toolchains" / folder
            target.mkdir(parents=True)
            for pattern in patterns.get(folder, FILES):
                for file in (TOP / "toolchains" / folder).glob(pattern):
                    shutil.copy(file, target)
        for name in ("bazelw", ".bazelversion", "toolchains/__init__.py"):
            shutil.copy(TOP / name, self.root / name)
        (self.root / "MODULE.bazel").touch()
        self.version = (self.root / ".bazelversion").read_text().strip()

    @property
    def lock(self) -> pathlib.Path:
        return self.root / "toolchains/debian/lock.json"

    def environ(self, **extra: str) -> dict[str, str]:
        # With TEST_TMPDIR the client announces other defaults.
        ours = ("BAZELW", "AITER_ATTN", "TEST_TMPDIR")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        return kept | {
            "BAZELW_MODE": "debian",
            "BAZELW_CACHE": str(self.cache),
            "AITER_ATTN_DEBIAN_MIRROR": self.archive,
            **extra,
        }

    def start(self, **extra: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, self.root / "bazelw", "--version"],
            env=self.environ(**extra),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, **extra: str) -> subprocess.CompletedProcess[str]:
        process = self.start(**extra)
        out, err = process.communicate(timeout=240)
        return subprocess.CompletedProcess([], process.returncode, out.strip(), err)

    def works(self) -> str:
        """Runs it, expecting success. Returns what it said besides."""
        got = self.run()
        assert (got.returncode, got.stdout) == (0, f"bazel {self.version}"), got.stderr
        assert self.left_behind() == []
        return got.stderr

    def left_behind(self) -> list[str]:
        return [p.name for p in self.cache.iterdir() if p.name.startswith(".")]

    def complete(self) -> list[pathlib.Path]:
        return list(self.cache.glob("bazel-*/complete"))

    def damage_lock(self, old: str, new: str) -> None:
        text = self.lock.read_text()
        assert old in text
        self.lock.write_text(text.replace(old, new))

    def wait_until_unpacking(self, process: subprocess.Popen[str]) -> None:
        """Returns when the bundle has some files, well before it is complete."""
        for _ in range(2000):
            if list(self.cache.glob(".new-*/bundle/usr/share")):
                return
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        raise AssertionError("no bundle appeared")
