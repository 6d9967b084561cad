# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The decisions of a set-up that need no package: host, versions, cache folder."""

from __future__ import annotations

import os
import pathlib
import shutil
import types

import pytest

from toolchains.bazel import install, main, sandbox, setup
from toolchains.debian import lock
from toolchains.locks.errors import LocksError

TIME = "20260131T235959Z"
OLD = lock.Package("bazel-bootstrap", "7.7.1+ds-1", "pool/b/b_1.deb", "a" * 64, 3, TIME)


def test_version_must_be_that_of_bazelversion() -> None:
    install.check_version([OLD], "7.7.1", "lock.json")
    for version in ("7.7", "7.7.10", "8.0.0"):
        with pytest.raises(LocksError, match=f"7.7.1.ds-1, .bazelversion asks for {version}"):
            install.check_version([OLD], version, "lock.json")


def test_other_machines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: types.SimpleNamespace(machine="aarch64"))
    with pytest.raises(LocksError, match=r"aarch64.*bazelisk"):
        install.check_host()


def test_machine_without_dpkg_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: types.SimpleNamespace(machine="x86_64"))
    monkeypatch.setattr(shutil, "which", lambda tool: None)
    with pytest.raises(LocksError, match=r"no dpkg-deb here.*bazelisk.*BAZELW_BAZEL"):
        install.check_host()


def test_another_rc_file(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "bazelrc"
    file.touch()
    assert main._more_settings({}) == []
    assert main._more_settings({"BAZELW_BAZELRC": ""}) == []
    assert main._more_settings({"BAZELW_BAZELRC": str(file)}) == [f"--bazelrc={file}"]


@pytest.mark.parametrize("value", ["bazelrc", "/no/such/bazelrc", "/"])
def test_another_rc_file_that_is_none(value: str) -> None:
    with pytest.raises(LocksError, match=f"BAZELW_BAZELRC is '{value}'; want the absolute path"):
        main._more_settings({"BAZELW_BAZELRC": value})


@pytest.mark.parametrize(
    ("mounted", "free", "used"), [(True, 1, True), (True, 0, False), (False, 1, False)]
)
def test_sandboxes_are_in_memory_where_there_is_room(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, mounted: bool, free: int, used: bool
) -> None:
    monkeypatch.setattr(os.path, "ismount", lambda path: mounted)
    room = types.SimpleNamespace(f_bavail=free << 18, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda path: room)
    here = os.path.dirname(sandbox.__file__)
    got = sandbox.settings(here, str(tmp_path))
    assert got == ([f"--bazelrc={here}/memory.bazelrc"] if used else [])
    for option in got:
        rc = pathlib.Path(option.partition("=")[2]).read_text()
        assert f"build --sandbox_base={sandbox.MEMORY}\n" in rc


def test_no_sandboxes_where_there_is_no_such_folder(tmp_path: pathlib.Path) -> None:
    assert sandbox.settings("here", f"{tmp_path}/none") == []


def test_cache_folder_that_cannot_be_written(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    assert setup._done(f"{tmp_path}/file/cache/bazel-1") is None
    with (
        pytest.raises(LocksError, match=rf"{tmp_path}/file/cache.*set BAZELW_CACHE"),
        install.exclusive(f"{tmp_path}/file/cache"),
    ):
        pass


def test_scratch_removes_what_a_killed_set_up_left(tmp_path: pathlib.Path) -> None:
    left = tmp_path / ".new-left" / "bundle"
    left.mkdir(parents=True)
    (left / "file").write_text("")
    with install._scratch(str(tmp_path)) as scratch:
        assert [str(p) for p in tmp_path.iterdir()] == [scratch]
    assert list(tmp_path.iterdir()) == []


def test_unknown_mode_and_relock_list_the_choices() -> None:
    with pytest.raises(LocksError, match="'nix'; it may be auto, bazelisk, debian"):
        main._bazel({"BAZELW_MODE": "nix"})
    with pytest.raises(LocksError, match="--relock npm: there are bazel, debian, pypi"):
        main.relock(["pypi", "npm"])


def test_bazelisk_is_preferred_and_can_be_overruled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda tool: f"/opt/{tool}")
    monkeypatch.setattr(setup, "debian_bazel", lambda *_: ["debian"])
    assert main._bazel({}) == ["/opt/bazelisk"]
    monkeypatch.setattr(sandbox, "settings", lambda folder: ["sandboxes"])
    assert main._bazel({"BAZELW_MODE": "debian"}) == ["debian", "sandboxes"]
    assert main._bazel({"BAZELW_BAZEL": "/opt/mine", "BAZELW_MODE": "debian"}) == ["/opt/mine"]
    monkeypatch.setattr(shutil, "which", lambda tool: None)
    assert main._bazel({}) == ["debian", "sandboxes"]
    with pytest.raises(LocksError, match="no bazelisk on PATH"):
        main._bazel({"BAZELW_MODE": "bazelisk"})
