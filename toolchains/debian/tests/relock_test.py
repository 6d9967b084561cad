# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writing the lock anew, with a stand-in for the archive's index."""

from __future__ import annotations

import hashlib
import pathlib

import pytest

from toolchains.debian import lock, mirrors, relock
from toolchains.locks.errors import LocksError
from toolchains.locks.tests.servers import files_up_to

PACKAGES = """
[group.one]
suite = "sid"
packages = ["ab"]

[group.two]
suite = "forky"
packages = ["ab"]
"""


def index(version: str) -> str:
    return (
        f"Package: ab\nVersion: {version}\nFilename: pool/main/a/ab_{version}_amd64.deb\n"
        f"SHA256: {hashlib.sha256(version.encode()).hexdigest()}\nSize: 3\n"
    )


@pytest.fixture
def files(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    (tmp_path / "packages.toml").write_text(PACKAGES)
    monkeypatch.setattr(relock, "PACKAGES", tmp_path / "packages.toml")
    monkeypatch.setattr(lock, "LOCK", tmp_path / "lock.json")
    monkeypatch.setattr(mirrors, "find", lambda: ["http://a.example"])
    monkeypatch.setattr(
        relock, "fetch_index", lambda suite, archives: (index(f"1-{suite}"), "20260101T000000Z")
    )
    return tmp_path


def locked(files: pathlib.Path) -> dict[str, str]:
    groups = lock.parse((files / "lock.json").read_text(), "lock.json")
    return {name: group.packages[0].version for name, group in groups.items()}


def test_all_groups(files: pathlib.Path) -> None:
    assert relock.relock() == ["one: ab: none -> 1-sid", "two: ab: none -> 1-forky"]
    assert locked(files) == {"one": "1-sid", "two": "1-forky"}
    assert relock.relock() == []
    assert sorted(p.name for p in files.iterdir()) == ["lock.json", "packages.toml"]


def test_a_full_disk_leaves_the_old_lock_alone(files: pathlib.Path) -> None:
    relock.relock()
    old = (files / "lock.json").read_bytes()
    (files / "packages.toml").write_text(PACKAGES.split("[group.two]")[0])
    with files_up_to(100), pytest.raises(LocksError, match=r"cannot write .*lock\.json.*too large"):
        relock.relock()
    assert (files / "lock.json").read_bytes() == old
    assert sorted(p.name for p in files.iterdir()) == ["lock.json", "packages.toml"]


def test_one_group_leaves_the_others(files: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    relock.relock()
    later = "20260202T000000Z"
    monkeypatch.setattr(relock, "fetch_index", lambda suite, archives: (index("2"), later))
    assert relock.relock(["two"]) == ["two: ab: 1-forky -> 2"]
    assert locked(files) == {"one": "1-sid", "two": "2"}


def test_a_file_keeps_the_time_that_it_was_locked_with(
    files: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    relock.relock()
    later = "20260202T000000Z"
    monkeypatch.setattr(relock, "fetch_index", lambda suite, archives: (index(f"1-{suite}"), later))
    relock.relock()
    groups = lock.parse((files / "lock.json").read_text(), "lock.json")
    assert {g.packages[0].time for g in groups.values()} == {"20260101T000000Z"}
    monkeypatch.setattr(relock, "fetch_index", lambda suite, archives: (index("3"), later))
    relock.relock()
    groups = lock.parse((files / "lock.json").read_text(), "lock.json")
    assert {g.packages[0].time for g in groups.values()} == {later}


def test_group_that_is_wanted_no_more_leaves_the_lock(files: pathlib.Path) -> None:
    relock.relock()
    (files / "packages.toml").write_text(PACKAGES.split("[group.two]")[0])
    assert relock.relock() == ["two: ab: 1-forky -> none"]
    assert locked(files) == {"one": "1-sid"}


def test_damaged_lock_is_no_obstacle_to_all_but_to_one(files: pathlib.Path) -> None:
    (files / "lock.json").write_text("{")
    with pytest.raises(LocksError):
        relock.relock(["one"])
    relock.relock()
    assert locked(files) == {"one": "1-sid", "two": "1-forky"}


def test_unknown_group_lists_the_others(files: pathlib.Path) -> None:
    with pytest.raises(LocksError, match=r"no group 'three'; there are \['one', 'two'\]"):
        relock.resolve_anew(["three"])
