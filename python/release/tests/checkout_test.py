# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Checkouts: committed, modified, and none at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from python.release import checkout
from python.release.errors import ReleaseError
from python.release.tests import builds


@pytest.fixture(autouse=True)
def no_checkout_around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")


def test_a_clean_one(tmp_path: Path) -> None:
    sha = builds.commit(tmp_path / "tree", "feat: a", a="1")
    found = checkout.head(tmp_path / "tree")
    assert found == checkout.Commit(sha, 1767323045)
    assert found.date().isoformat() == "2026-01-02T03:04:05+00:00"


def test_modified_files_are_released_only_when_asked(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    builds.commit(root, "feat: a", a="1", b="2", moved="a text that git knows again\n")
    (root / "a").write_text("changed")
    (root / "with space").write_text("new")
    builds.git(root, "mv", "moved", "to")
    with pytest.raises(ReleaseError, match=r"3 files differ .*: a, to, with space") as error:
        checkout.head(root)
    assert "--dirty" in str(error.value)
    assert checkout.head(root, allow_modified=True).modified == ("a", "to", "with space")


def test_ignored_files_do_not_count(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    builds.commit(root, "feat: a", **{".gitignore": "/out\n"})
    (root / "out").write_text("")
    assert checkout.head(root).modified == ()


@pytest.mark.parametrize("empty_repository", [False, True])
def test_no_commit(tmp_path: Path, empty_repository: bool) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    if empty_repository:
        builds.git(root, "init", "-q")
    with pytest.raises(ReleaseError, match="no commit to release"):
        checkout.head(root)


def test_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ReleaseError, match="git is not on PATH"):
        checkout.head(tmp_path)
