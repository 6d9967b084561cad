# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The disk cache: it stays below its size, also while others use it, and may be on a full disk."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e import clone

FILES = 6
SIZE = 1_000_000
BUILD = f"""[genrule(
    name = "file%d" % i,
    outs = ["out%d" % i],
    cmd = "head -c {SIZE} /dev/zero | tr '\\\\0' %d > $@" % i,
) for i in range({FILES})]
"""
# `--config=cache` has the first; an idle Bazel waits minutes for it.
LIMITS = [
    "--experimental_disk_cache_gc_max_size=3M",
    "--experimental_disk_cache_gc_idle_delay=0s",
]


class Workspace:
    """A workspace of six files of a megabyte, built by this checkout's bazelw."""

    def __init__(self, folder: Path, disk_cache: Path, wrapper: Sequence[str] = ()) -> None:
        self.root = folder / "workspace"
        self.root.mkdir(parents=True)
        (self.root / "MODULE.bazel").write_text('module(name = "files")\n')
        (self.root / "BUILD.bazel").write_text(BUILD)
        self.output = folder / "output"
        self.disk_cache = disk_cache
        self.wrapper = wrapper

    def bazel(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                *self.wrapper,
                str(clone.workspace() / "bazelw"),
                f"--output_user_root={self.output}",
                "--max_idle_secs=60",
                *arguments,
            ],
            cwd=self.root,
            env=clone.stranger_environment(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def build(self, *flags: str) -> str:
        """Builds from a clean tree, checks the wheel, and returns Bazel's output."""
        self.bazel("clean")
        own = ["--lockfile_mode=off", f"--disk_cache={self.disk_cache}"]
        got = self.bazel("build", *own, *flags, "//:all")
        assert got.returncode == 0, got.stdout
        for i in range(FILES):
            assert (self.root / f"bazel-bin/out{i}").read_bytes() == b"%d" % i * SIZE
        return got.stdout

    def close(self) -> None:
        self.bazel("shutdown")
        subprocess.run(["chmod", "-R", "u+w", str(self.output)], check=False)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    made = Workspace(tmp_path / "one", tmp_path / "disk")
    yield made
    made.close()


def stored(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:  # collected meanwhile
            continue
    return total


def test_the_repository_limits_it() -> None:
    lines = (clone.workspace() / ".bazelrc").read_text().splitlines()
    assert any(line.startswith(f"build:cache {LIMITS[0].split('=')[0]}=") for line in lines)


def test_it_stays_below_its_size(workspace: Workspace) -> None:
    workspace.build()
    assert stored(workspace.disk_cache) > FILES * SIZE
    workspace.build(*LIMITS)
    deadline = time.monotonic() + 60
    while stored(workspace.disk_cache) > 3 << 20:
        assert time.monotonic() < deadline, "nothing was collected"
        time.sleep(0.2)
    again = workspace.build()
    assert "disk cache hit" in again, "what was used last is kept"
    assert "sandbox" in again, "what was collected is made again"


def test_two_builds_share_it_while_it_is_collected(workspace: Workspace, tmp_path: Path) -> None:
    other = Workspace(tmp_path / "two", workspace.disk_cache)
    said: list[str] = []

    def build(which: Workspace) -> None:
        for _ in range(4):
            said.append(which.build(*LIMITS))

    try:
        threads = [threading.Thread(target=build, args=(w,)) for w in (workspace, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        other.close()
    assert len(said) == 8, "a build failed: its thread has printed why"
    assert any("disk cache hit" in text for text in said)


def test_a_full_disk(tmp_path: Path) -> None:
    """The files do not fit into the cache: they are built all the same."""
    disk = tmp_path / "disk"
    disk.mkdir()
    small = 'mount -t tmpfs -o size=2m tmpfs "$0" && exec "$@"'
    wrapper = ["unshare", "--map-root-user", "--mount", "sh", "-c", small, str(disk)]
    full = Workspace(tmp_path / "full", disk, wrapper)
    try:
        assert "No space left on device" in full.build()
    finally:
        full.close()
