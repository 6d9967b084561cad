# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Fetching packages, with apt's downloader replaced by one that copies files."""

from __future__ import annotations

import hashlib
import pathlib
import stat

import pytest

from toolchains.bazel import store
from toolchains.bazel.errors import Progress
from toolchains.debian.lock import Package

# Stands in for apt-helper: copies from file:// archives, links for link:// ones, fails else.
HELPER = """#!/bin/sh
while [ "$1" != download-file ]; do shift; done
shift
status=0
while [ $# -ge 3 ]; do
    case $1 in
    file://*) cp "${1#file://}" "$2" 2>/dev/null ||
        { echo "E: Failed to fetch $1  404  Not Found" >&2; status=100; } ;;
    link://*) ln -s "${1#link://}" "$2" ;;
    *) echo "E: Failed to fetch $1  Could not connect to host" >&2; status=100 ;;
    esac
    echo "$1" >>"$0.log"
    shift 3
done
exit $status
"""


class Scene:
    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.archive = root / "archive"
        self.store = root / "store"
        self.scratch = root / "scratch"
        self.scratch.mkdir()
        self.helper = root / "helper"
        self.helper.write_text(HELPER)
        self.helper.chmod(self.helper.stat().st_mode | stat.S_IXUSR)

    def package(self, name: str, contents: bytes, served: bytes | None = None) -> Package:
        path = f"pool/{name}_1%2b1.deb"
        (self.archive / "pool").mkdir(parents=True, exist_ok=True)
        (self.archive / path).write_bytes(contents if served is None else served)
        return Package(name, "1+1", path, hashlib.sha256(contents).hexdigest(), len(contents))

    def fetch(self, packages: list[Package], *archives: str) -> dict[str, str]:
        names = archives or (f"file://{self.archive}",)
        failed = store.fetch(packages, str(self.store), str(self.scratch), names, Progress())
        assert list(self.scratch.iterdir()) == []
        return {p.name: reason for p, reason in failed.items()}

    def stored(self) -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in self.store.iterdir()}

    def asked(self) -> list[str]:
        log = pathlib.Path(f"{self.helper}.log")
        return log.read_text().split() if log.exists() else []


@pytest.fixture
def scene(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    scene = Scene(tmp_path)
    monkeypatch.setattr(store, "APT_HELPER", str(scene.helper))
    return scene


def test_files_are_stored_by_digest_and_not_fetched_again(scene: Scene) -> None:
    packages = [scene.package("one", b"1"), scene.package("two", b"22")]
    assert scene.fetch(packages) == {}
    assert scene.stored() == {
        packages[0].sha256 + ".deb": b"1",
        packages[1].sha256 + ".deb": b"22",
    }
    asked = len(scene.asked())
    assert scene.fetch(packages) == {}
    assert len(scene.asked()) == asked


def test_damaged_file_in_the_store_is_fetched_again(scene: Scene) -> None:
    package = scene.package("one", b"1")
    scene.fetch([package])
    place = pathlib.Path(store.location(str(scene.store), package))
    place.write_bytes(b"2")
    assert scene.fetch([package]) == {}
    assert place.read_bytes() == b"1"


def test_a_link_to_a_local_archive_becomes_a_file(scene: Scene) -> None:
    package = scene.package("one", b"1")
    assert scene.fetch([package], f"link://{scene.archive}") == {}
    assert not pathlib.Path(store.location(str(scene.store), package)).is_symlink()


def test_wrong_contents_never_enter_the_store(scene: Scene) -> None:
    packages = [scene.package("good", b"1"), scene.package("bad", b"locked", b"served")]
    failed = scene.fetch(packages)
    assert list(failed) == ["bad"]
    assert store.archive_answered(failed["bad"])
    assert list(scene.stored()) == [packages[0].sha256 + ".deb"]


def test_next_archive_serves_what_the_first_lacks(scene: Scene) -> None:
    package = scene.package("one", b"1")
    assert scene.fetch([package], "file:///nowhere", f"file://{scene.archive}") == {}


def test_unreachable_archive_costs_one_attempt(scene: Scene) -> None:
    packages = [scene.package(f"p{n}", bytes(n)) for n in range(1, 9)]
    failed = scene.fetch(packages, "http://unreachable.example")
    assert set(failed) == {p.name for p in packages}
    assert not any(map(store.archive_answered, failed.values()))
    assert len(scene.asked()) == 1
    assert scene.fetch(packages, "http://unreachable.example", f"file://{scene.archive}") == {}


def test_every_archive_s_reason_is_told(scene: Scene) -> None:
    package = scene.package("one", b"1")
    failed = scene.fetch([package], "http://unreachable.example", "file:///nowhere")
    assert failed["one"] == (
        "http://unreachable.example: Could not connect to host; file:///nowhere: 404  Not Found"
    )


def test_reasons_are_found_by_file_name() -> None:
    log = (
        "E: Failed to fetch http://a.example/pool/x_1%2b2_amd64.deb  404  Not Found [IP: ::1 80]\n"
        "E: Failed to fetch file:/srv/pool/y.deb  Hash Sum mismatch\n   Hashes of expected file:\n"
        "E: Download Failed\n"
    )
    assert store.failure_reasons(log) == {
        "x_1+2_amd64.deb": "404  Not Found [IP: ::1 80]",
        "y.deb": "Hash Sum mismatch",
    }
