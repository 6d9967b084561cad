# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Release notes: a breaking commit is named, and one that cannot be read is an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from python.release import notes
from python.release.errors import ReleaseError
from python.release.tests import builds


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")


def read(message: str) -> notes.Change:
    return notes.read("c0ffee" * 6, message)


@pytest.mark.parametrize(
    ("message", "scope", "description", "breaks"),
    [
        ("feat: a", None, "a", None),
        ("fix(aiter): b: c", "aiter", "b: c", None),
        ("feat(a/b)!: new order", "a/b", "new order", "new order"),
        ("feat!: x\n\nBREAKING CHANGE: old calls\nare refused\n\nRefs: #3", None, "x",
         "old calls are refused"),
        ("fix: x\n\nWhy.\n\nBREAKING-CHANGE: y\nSigned-off-by: A", None, "x", "y"),
        ("fix: x\n\nIt is no BREAKING CHANGE: at all", None, "x", None),
        ("fix: x\n\nbreaking change: lower case is none", None, "x", None),
    ],
)  # fmt: skip
def test_a_message(message: str, scope: str | None, description: str, breaks: str | None) -> None:
    change = read(message)
    assert (change.scope, change.description, change.breaks) == (scope, description, breaks)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("Update README", ("Update README", "first line", "TYPE(SCOPE): DESCRIPTION")),
        ("feature: a", ("'feature'", "feat, fix, perf")),
        ("feat:a", ("first line",)),
        ("feat(): a", ("first line",)),
        ("feat: ", ("first line",)),
        ('Revert "feat: a"', ("first line", "--read_as='c0ffeec0ffee=fix: ...'")),
        ("", ("first line",)),
    ],
)
def test_what_cannot_be_read_names_the_commit(message: str, words: tuple[str, ...]) -> None:
    with pytest.raises(ReleaseError) as error:
        read(message)
    for word in ("c0ffeec0ffee", *words):
        assert word in str(error.value)


def test_notes_of_a_checkout(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    builds.commit(root, "feat: before the tag")
    builds.git(root, "tag", "v1")
    mended = builds.commit(root, "fix(webdav): a lock ends")
    broken = builds.commit(
        root, "refactor(aiter)!: structs have sizes\n\nBREAKING CHANGE: recompile"
    )
    builds.commit(root, "test: more")
    newest = builds.commit(root, "feat: packs")
    text = notes.write([notes.read(*entry) for entry in notes.commits(root, "v1", "HEAD")], "v1")
    assert text.splitlines() == [
        "# Changes since v1",
        "",
        "## Breaks",
        "",
        f"- **aiter**: recompile ({broken[:12]})",
        "",
        "## New",
        "",
        f"- packs ({newest[:12]})",
        "",
        "## Mended",
        "",
        f"- **webdav**: a lock ends ({mended[:12]})",
    ]


def test_nothing_to_tell(tmp_path: Path) -> None:
    builds.commit(tmp_path, "feat: a")
    builds.git(tmp_path, "tag", "v1")
    assert "Nothing that users would notice" in notes.write([], "v1")
    assert notes.commits(tmp_path, "v1", "HEAD") == []


def test_merges_are_left_out(tmp_path: Path) -> None:
    builds.commit(tmp_path, "feat: a")
    builds.git(tmp_path, "tag", "v1")
    builds.git(tmp_path, "checkout", "-q", "-b", "side")
    side = builds.commit(tmp_path, "fix: b", b="b")
    builds.git(tmp_path, "checkout", "-q", "main")
    main = builds.commit(tmp_path, "feat: c", c="c")
    builds.git(tmp_path, "merge", "-q", "--no-ff", "-m", "Merge side", "side")
    assert {sha for sha, _ in notes.commits(tmp_path, "v1", "HEAD")} == {side, main}


def test_a_tag_that_is_not_there(tmp_path: Path) -> None:
    builds.commit(tmp_path, "feat: a")
    with pytest.raises(ReleaseError, match=r"'v9' is no tag.*there are no tags"):
        notes.commits(tmp_path, "v9", "HEAD")
    builds.git(tmp_path, "tag", "v1")
    with pytest.raises(ReleaseError, match=r"newest tags are v1.*--unshallow"):
        notes.commits(tmp_path, "v9", "HEAD")
    with pytest.raises(ReleaseError, match="'--output=x' is no tag"):
        notes.commits(tmp_path, "--output=x", "HEAD")


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess:
    """The program, as Bazel runs it."""
    return subprocess.run(
        [sys.executable, notes.__file__, *arguments],
        env={
            "BUILD_WORKSPACE_DIRECTORY": str(root),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": ":".join(filter(None, sys.path)),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_program(tmp_path: Path) -> None:
    builds.commit(tmp_path, "feat: a")
    builds.git(tmp_path, "tag", "v1")
    odd = builds.commit(tmp_path, "Update README")
    refused = run(tmp_path, "--since=v1")
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr.startswith(f"release_notes: error: commit {odd[:12]} 'Update README'")
    assert "Traceback" not in refused.stderr
    done = run(tmp_path, "--since=v1", f"--read_as={odd[:12]}=docs: README")
    assert done.returncode == 0
    assert f"- README ({odd[:12]})" in done.stdout
    unknown = run(tmp_path, "--since=v1", "--read_as=12345=docs: README")
    assert unknown.returncode == 1
    assert "0 of the commits begin with '12345'" in unknown.stderr
    bare = run(tmp_path)
    assert bare.returncode != 0
    assert "--since=TAG" in bare.stderr + bare.stdout
