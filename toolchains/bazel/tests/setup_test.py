# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The decisions of a set-up that need no package: host, versions, drift, cache folder."""

from __future__ import annotations

import os
import pathlib
import shutil
import types

import pytest

from toolchains.bazel import main, setup
from toolchains.bazel.errors import BazelwError
from toolchains.debian import lock, relock

OLD = lock.Package("bazel-bootstrap", "7.7.1+ds-1", "pool/b/b_1.deb", "a" * 64, 3)
NEW = lock.Package("bazel-bootstrap", "7.7.1+ds-2", "pool/b/b_2.deb", "b" * 64, 4)
GONE = "http://a.example: 404  Not Found"


def resolved(monkeypatch: pytest.MonkeyPatch, *packages: lock.Package) -> None:
    group = lock.Group("forky", packages)
    monkeypatch.setattr(relock, "resolve_anew", lambda names: dict.fromkeys(names, group))


def resolve(reason: str = GONE, strict: bool = False) -> lock.Group:
    return setup._resolve_anew(lock.Group("forky", (OLD,)), {OLD: reason}, strict)


def test_vanished_package_is_replaced_loudly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    resolved(monkeypatch, NEW)
    assert resolve().packages == (NEW,)
    told = capsys.readouterr().err
    for part in ("WARNING", "bazel-bootstrap 7.7.1+ds-1", "./bazelw --relock debian"):
        assert part in told


def test_vanished_package_is_an_error_where_strict() -> None:
    with pytest.raises(BazelwError, match=r"404.*AITER_ATTN_STRICT=1 allows no others"):
        resolve(strict=True)


def test_unreachable_archive_is_not_a_vanished_package() -> None:
    with pytest.raises(BazelwError, match=r"Could not connect.*AITER_ATTN_DEBIAN_MIRROR"):
        resolve("http://a.example: Could not connect")


def test_wrong_digest_in_the_lock_is_told_from_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    resolved(monkeypatch, lock.Package(OLD.name, OLD.version, OLD.path, "c" * 64, OLD.size))
    with pytest.raises(BazelwError, match=f"{'a' * 64}.*{'c' * 64}.*the lock is corrupted"):
        resolve("http://a.example: Hash Sum mismatch")


def test_archive_that_lacks_what_its_index_has(monkeypatch: pytest.MonkeyPatch) -> None:
    resolved(monkeypatch, OLD)
    with pytest.raises(BazelwError, match="although the index has it"):
        resolve()


def test_version_must_be_that_of_bazelversion() -> None:
    group = lock.Group("forky", (OLD,))
    setup._check_version(group, "7.7.1", "lock.json")
    for version in ("7.7", "7.7.10", "8.0.0"):
        with pytest.raises(BazelwError, match=f"7.7.1.ds-1, .bazelversion asks for {version}"):
            setup._check_version(group, version, "lock.json")


def test_other_machines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: types.SimpleNamespace(machine="aarch64"))
    with pytest.raises(BazelwError, match=r"aarch64.*bazelisk"):
        setup._check_host()


def test_machine_without_apt_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: types.SimpleNamespace(machine="x86_64"))
    monkeypatch.setattr(shutil, "which", lambda tool: None)
    with pytest.raises(BazelwError, match=r"no apt-get here.*bazelisk.*BAZELW_BAZEL"):
        setup._check_host()


def test_cache_folder() -> None:
    assert setup.cache_folder({"BAZELW_CACHE": "/a/b/"}) == "/a/b"
    assert setup.cache_folder({"XDG_CACHE_HOME": "/x"}) == "/x/bazelw"
    assert setup.cache_folder({}) == os.path.expanduser("~/.cache/bazelw")
    for bad in ("/with blank/x", "/with:colon", "/with$dollar", "/new\nline"):
        with pytest.raises(BazelwError, match="BAZELW_CACHE"):
            setup.cache_folder({"BAZELW_CACHE": bad})


def test_cache_folder_that_cannot_be_written(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    assert setup._done(f"{tmp_path}/file/cache/bazel-1") is None
    with (
        pytest.raises(BazelwError, match=rf"{tmp_path}/file/cache.*set BAZELW_CACHE"),
        setup._exclusive(f"{tmp_path}/file/cache"),
    ):
        pass


def test_scratch_removes_what_a_killed_set_up_left(tmp_path: pathlib.Path) -> None:
    left = tmp_path / ".new-left" / "bundle"
    left.mkdir(parents=True)
    (left / "file").write_text("")
    with setup._scratch(str(tmp_path)) as scratch:
        assert [str(p) for p in tmp_path.iterdir()] == [scratch]
    assert list(tmp_path.iterdir()) == []


def test_unknown_mode_and_relock_list_the_choices() -> None:
    with pytest.raises(BazelwError, match="'nix'; it may be auto, bazelisk, debian"):
        main._bazel({"BAZELW_MODE": "nix"})
    with pytest.raises(BazelwError, match="--relock npm: there are bazel, debian, pypi"):
        main.relock(["pypi", "npm"])


def test_bazelisk_is_preferred_and_can_be_overruled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda tool: f"/opt/{tool}")
    monkeypatch.setattr(setup, "debian_bazel", lambda *_: ["debian"])
    assert main._bazel({}) == ["/opt/bazelisk"]
    assert main._bazel({"BAZELW_MODE": "debian"}) == ["debian"]
    assert main._bazel({"BAZELW_BAZEL": "/opt/mine", "BAZELW_MODE": "debian"}) == ["/opt/mine"]
    monkeypatch.setattr(shutil, "which", lambda tool: None)
    assert main._bazel({}) == ["debian"]
    with pytest.raises(BazelwError, match="no bazelisk on PATH"):
        main._bazel({"BAZELW_MODE": "bazelisk"})
