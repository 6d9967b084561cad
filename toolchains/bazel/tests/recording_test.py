# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Records of builds: their options, their places, and damaged ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolchains.bazel import rc_files, recorded, recording
from toolchains.bazel.recording import FILES, Recording
from toolchains.locks.errors import LocksError

_LINE = {"at": "2026-01-01T00:00:00Z", "compiled": 1}


def _environ(cache: Path) -> dict[str, str]:
    return {"BAZELW_CACHE": str(cache)}


@pytest.mark.parametrize(
    ("arguments", "at"),
    [
        (["build", "//a"], 0),
        (["--output_base=x", "--batch", "test", "//a"], 2),
        (["run", "//a"], None),
        (["query", "build"], None),
        (["--output_base", "build", "run"], None),
        (["--output_base", "x", "build"], None),
        (["--nohome_rc", "build"], 1),
        (["--version"], None),
        ([], None),
    ],
)
def test_builds_and_tests_are_recorded(arguments: list[str], at: int | None) -> None:
    assert recording.command_at(arguments) == at


def test_ours_come_first(tmp_path: Path) -> None:
    got = Recording(str(tmp_path)).command(["--batch", "build", "--jobs=2", "--", "-//x"], "")
    assert got is not None
    assert got[:2] == ["--batch", "build"]
    assert got[-3:] == ["--jobs=2", "--", "-//x"]
    running = f"{tmp_path}/running-{os.getpid()}"
    files = {option: f"{running}/{name}" for option, name in FILES.items()}
    assert {f"{option}={file}" for option, file in files.items()} < set(got[2:-3])


@pytest.mark.parametrize("option", [*FILES, "--execution_log_json_file"])
def test_who_writes_them_elsewhere_gets_them_there(option: str, tmp_path: Path) -> None:
    to = Recording(str(tmp_path))
    assert to.command(["build", f"{option}=/elsewhere/x", "//a"], "") is None
    assert to.command(["build", option, "/elsewhere/x", "//a"], "") is None
    assert to.command(["build", "//a"], f"build:ci {option}=/elsewhere/x\n") is None
    assert to.command(["test", "//a", "--", option], "") is not None


def test_rc_files_that_are_named(tmp_path: Path) -> None:
    for name in ("home/.bazelrc", "top/user.bazelrc", "a", "b"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"build --of={name}")
    top, home = f"{tmp_path}/top", f"{tmp_path}/home"
    startup = [f"--bazelrc={tmp_path}/a", "--bazelrc", f"{tmp_path}/b", "--bazelrc=/no/such"]
    got = rc_files.text(top, [*startup, "run", "//x", "--", "--bazelrc=/etc/passwd"], home)
    want = [f"build --of={name}" for name in ("home/.bazelrc", "top/user.bazelrc", "a", "b")]
    assert got.splitlines() == want
    assert rc_files.text("/no/such", [], "/no/such") == ""


def test_workspaces_do_not_share(tmp_path: Path) -> None:
    folders = {recording.folder_of(name, _environ(tmp_path)) for name in ("/a", "/b", "/a/.")}
    assert len(folders) == 2
    assert all(folder.startswith(f"{tmp_path}/builds/") for folder in folders)


def test_the_last_build_is_kept_and_earlier_ones_are_lines(tmp_path: Path) -> None:
    one = Recording(str(tmp_path / "w"))
    for number in range(3):
        one.start()
        Path(one.events).write_text(str(number))
        one.keep({**_LINE, "compiled": number})
    assert (tmp_path / "w/last/events.json").read_text() == "2"
    assert [line["compiled"] for line in recording.history(one.folder)] == [0, 1, 2]
    assert sorted(p.name for p in (tmp_path / "w").iterdir()) == ["history.jsonl", "last"]


def test_a_build_that_runs_is_left_alone_and_one_that_was_killed_goes(tmp_path: Path) -> None:
    one = Recording(str(tmp_path))
    alive, killed = tmp_path / f"running-{os.getppid()}", tmp_path / "running-999999999"
    for folder in (alive, killed):
        folder.mkdir()
    one.start()
    assert {file.name for file in tmp_path.iterdir()} == {alive.name, f"running-{os.getpid()}"}
    one.drop()
    assert [file.name for file in tmp_path.iterdir()] == [alive.name]


def test_the_history_has_an_end_and_outlives_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_MOST_BUILDS", 3)
    one = Recording(str(tmp_path))
    lines = "".join(json.dumps({"compiled": n}) + "\n" for n in range(3))
    (tmp_path / "history.jsonl").write_text('{"compiled": 9' + "\n" + lines)
    one.start()
    one.keep(_LINE)
    assert [line["compiled"] for line in recording.history(str(tmp_path))] == [1, 2, 1]


def test_seconds_are_of_all_workspaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = _environ(tmp_path)
    (tmp_path / "builds").mkdir()
    assert recording.read_seconds(environ) == {}
    recording.write_seconds({"a": 1.0, "b": 2.0}, environ)
    recording.write_seconds({"a": 3.456}, environ)
    assert recording.read_seconds(environ) == {"b": 2.0, "a": 3.46}
    monkeypatch.setattr(recording, "_MOST_SECONDS", 2)
    recording.write_seconds({"c": 4.0}, environ)
    assert recording.read_seconds(environ) == {"a": 3.46, "c": 4.0}
    (tmp_path / "builds/seconds.json").write_text("[1")
    assert recording.read_seconds(environ) == {}


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, True),
        ({"CI": "true"}, False),
        ({"CI": "1"}, False),
        ({"CI": "false"}, True),
        ({"CI": "true", "BAZELW_PROGRESS": "always"}, True),
        ({"BAZELW_PROGRESS": "never"}, False),
        ({"BAZELW_PROGRESS": "auto"}, True),
    ],
)
def test_when_it_is_told_of(environ: dict[str, str], wanted: bool) -> None:
    assert recorded.wanted(environ) == recorded.followed(environ, "") == wanted
    # One that an executor may let wait is followed unless that is forbidden.
    never = environ.get("BAZELW_PROGRESS") == "never"
    assert recorded.followed(environ, "grpc://host:1") != never


def test_an_unknown_setting() -> None:
    with pytest.raises(LocksError, match="BAZELW_PROGRESS is 'yes'; it may be auto, always, never"):
        recorded.wanted({"BAZELW_PROGRESS": "yes"})


def test_a_folder_that_cannot_be_made(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The build is not recorded and says so; it goes on."""
    (tmp_path / "builds").write_text("")
    recorded.run(["/bin/false"], ["build"], "", "/w", _environ(tmp_path))
    said = capfd.readouterr().err
    assert "this build is not recorded" in said
    assert "BAZELW_PROGRESS=never" in said


def test_nothing_is_done_for_other_commands(tmp_path: Path) -> None:
    recorded.run(["/bin/false"], ["run", "//a"], "", "/w", _environ(tmp_path))
    assert list(tmp_path.iterdir()) == []


_RUN = """
import os, sys
sys.path[:0] = {path!r}
from toolchains.bazel import recorded
recorded.run([sys.argv[1]], sys.argv[2:], "", "/w", os.environ)
"""


@pytest.mark.parametrize(
    ("ci", "code", "option", "said"),
    [
        ("", 34, "--remote_executor=grpc://host:1", True),
        ("true", 34, "--remote_executor=grpc://host:1", True),
        ("", 1, "--remote_executor=grpc://host:1", False),
        ("", 34, "--remote_cache=grpc://host:1", False),
    ],
)
def test_an_executor_that_failed(
    tmp_path: Path, ci: str, code: int, option: str, said: bool
) -> None:
    """bazelw ends as Bazel does, and names the page."""
    bazel = tmp_path / "bazel"
    bazel.write_text(f"#!/bin/sh\nexit {code}\n")
    bazel.chmod(0o755)
    ended = subprocess.run(
        [sys.executable, "-c", _RUN.format(path=sys.path), bazel, "build", option],
        env={**_environ(tmp_path), "CI": ci},
        text=True,
        capture_output=True,
    )
    assert ended.returncode == code, ended.stderr
    assert ('docs/scale.md, "When the executor fails"' in ended.stderr) == said
