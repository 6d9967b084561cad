# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Actions run by the real ninja, and their time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.bench.compiling import runner
from tests.e2e.action_graph import Action


def action(script: str, inputs: list[str], outputs: list[str], **env: str) -> Action:
    arguments = ("/bin/sh", "-c", script)
    return Action("Run", arguments, env, frozenset(inputs), tuple(outputs), {})


@pytest.fixture
def run(tmp_path: Path) -> runner.Runner:
    (tmp_path / "tree/kernels").mkdir(parents=True)
    (tmp_path / "tree/kernels/a.cpp").write_text("own source\n")
    (tmp_path / "external/ck").mkdir(parents=True)
    (tmp_path / "external/ck/b.cpp").write_text("another's source\n")
    return runner.Runner(
        ninja=Path(os.environ["NINJA"]).absolute(),
        jobs=1,
        sources=tmp_path / "tree",
        external=tmp_path / "external",
    )


def test_actions_run_in_order_on_the_sources_that_they_read(run: runner.Runner, tmp_path: Path):
    written = Action("FileWrite", (), {}, frozenset(), ("bazel-out/w.txt",), {}, "it's $written\n")
    last = action(
        'cat bazel-out/w.txt bazel-out/x.txt > bazel-out/y.txt; echo "$SAID" >> bazel-out/y.txt',
        ["bazel-out/w.txt", "bazel-out/x.txt"],
        ["bazel-out/y.txt"],
        SAID="with $HOME",
    )
    first = action(
        "cat kernels/a.cpp external/ck/b.cpp > bazel-out/x.txt",
        ["kernels/a.cpp", "external/ck/b.cpp"],
        ["bazel-out/x.txt"],
    )
    root = tmp_path / "root"
    usage = run.run(root, [last, first, written], ["bazel-out/y.txt"])
    text = (root / "bazel-out/y.txt").read_text()
    assert text == "it's $written\nown source\nanother's source\nwith $HOME\n"
    assert usage.size == len(text)


def test_a_written_program_runs_and_finds_its_runfiles(run: runner.Runner, tmp_path: Path):
    text = '#!/bin/sh\nexec cat "$0.runfiles/ck/b.cpp"\n'
    program = Action("FileWrite", (), {}, frozenset(), ("bazel-out/bin/show",), {}, text)
    show = action("bazel-out/bin/show > bazel-out/a", ["bazel-out/bin/show"], ["bazel-out/a"])
    run.run(tmp_path / "root", [program, show], ["bazel-out/a"])
    assert (tmp_path / "root/bazel-out/a").read_text() == "another's source\n"


def test_all_processor_time_is_counted_also_of_grandchildren(run: runner.Runner, tmp_path: Path):
    spin = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
    busy = action(f"/bin/sh -c '{spin}'; : > bazel-out/a", [], ["bazel-out/a"])
    idle = action("sleep 0.5; : > bazel-out/a", [], ["bazel-out/a"])
    spun = run.run(tmp_path / "busy", [busy], ["bazel-out/a"])
    slept = run.run(tmp_path / "idle", [idle], ["bazel-out/a"])
    assert spun.cpu > 2 * slept.cpu
    assert slept.wall > 0.5
    assert slept.cpu < slept.wall


def test_memory_is_of_the_greatest_process(run: runner.Runner, tmp_path: Path):
    fill = "dd if=/dev/zero of=/dev/null bs=200000000 count=1"
    big = action(f"{fill}; : > bazel-out/a", [], ["bazel-out/a"])
    small = action(": > bazel-out/a", [], ["bazel-out/a"])
    much = run.run(tmp_path / "big", [big], ["bazel-out/a"])
    little = run.run(tmp_path / "small", [small], ["bazel-out/a"])
    assert much.memory > 200_000_000 > little.memory


def test_an_action_that_fails_says_why(run: runner.Runner, tmp_path: Path):
    broken = action("echo a.cpp:1: error: no such type >&2; exit 1", [], ["bazel-out/a"])
    with pytest.raises(runner.FailedError, match=r"a\.cpp:1: error: no such type"):
        run.run(tmp_path / "root", [broken], ["bazel-out/a"])


def test_nothing_of_the_callers_environment_comes_in(
    run: runner.Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CCC_OVERRIDE_OPTIONS", "+-g")
    show = action("env > bazel-out/a", [], ["bazel-out/a"], PATH="/usr/bin:/bin")
    run.run(tmp_path / "root", [show], ["bazel-out/a"])
    assert "CCC_OVERRIDE_OPTIONS" not in (tmp_path / "root/bazel-out/a").read_text()
