# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Progress of kernels, from events as they come."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolchains.bazel.pace import Pace, Running
from toolchains.bazel.progress import Progress, jobs

RECIPES = [f"bazel-out/k8-opt/bin/{name}.recipe" for name in ("a", "b")]


class Build:
    """A build's events and outputs in a folder, and the progress that is made of them."""

    def __init__(self, folder: Path, kernels: int, jobs: int = 1, seconds: float = 10.0) -> None:
        self.root = folder / "execroot/_main"
        self.file = folder / "events.json"
        self.names = [f"bazel-out/k8-opt/bin/k{number}.hsaco" for number in range(kernels)]
        recorded = {f"k{number}.hsaco": seconds for number in range(kernels)}
        self.progress = Progress(str(self.file), lambda: recorded)
        options = [f"--jobs={jobs}", "--disk_cache=/cache"]
        self.event({"id": {"optionsParsed": {}}, "optionsParsed": {"cmdLine": options}})

    def event(self, event: dict[str, Any]) -> None:
        with self.file.open("a") as file:
            file.write(json.dumps(event, separators=(",", ":")) + "\n")

    def action(self, output: str, mnemonic: str, success: bool = True) -> None:
        uri = {"uri": f"file://{self.root}/{output}"}
        said = {"type": mnemonic, "primaryOutput": uri, "label": "//:x"}
        self.event({
            "id": {"actionCompleted": {"primaryOutput": output}},
            "action": {**said, **({"success": True} if success else {})},
        })  # fmt: skip

    def write(self, output: str, text: str = "") -> None:
        (self.root / output).parent.mkdir(parents=True, exist_ok=True)
        (self.root / output).write_text(text)

    def plan(self, now: float, groups: dict[str, str] | None = None) -> None:
        plan = "bazel-out/k8-opt/bin/table.plan.json"
        kernels = [[name, (groups or {}).get(name, "")] for name in self.names]
        # Two recipes, in turn.
        recipes = [RECIPES[number % 2] for number in range(len(kernels))]
        listed = {"figures": "", "kernels": kernels, "recipes": recipes}
        self.write(plan, json.dumps(listed))
        self.action(plan, "FileWrite")
        self.progress.read(now)

    def compiled(self, number: int, now: float) -> None:
        self.write(self.names[number])
        self.cached(number, now)

    def cached(self, number: int, now: float) -> None:
        self.action(self.names[number], "HipCodeObject")
        self.progress.read(now)


def test_nothing_is_said_without_a_plan(tmp_path: Path) -> None:
    build = Build(tmp_path, 3)
    build.compiled(0, 1.0)
    assert build.progress.line(2.0) == ""


def test_nothing_is_there_to_read_yet(tmp_path: Path) -> None:
    progress = Progress(str(tmp_path / "none"), dict)
    progress.read(1.0)
    assert progress.line(1.0) == ""


def test_kernels_are_counted_by_where_they_are_from(tmp_path: Path) -> None:
    build = Build(tmp_path, 20, seconds=8.0)
    build.plan(0.0)
    assert build.progress.line(1.0) == "kernels: 0 of 20"
    build.cached(0, 1.0)
    # Before a tenth there is no estimate.
    assert build.progress.line(2.0) == "kernels: 1 of 20 (1 from the disk cache)"
    build.compiled(1, 10.0)
    line = build.progress.line(10.0)
    assert line == "kernels: 2 of 20 (1 compiled, 1 from the disk cache), about 90 s left"
    for number in range(2, 20):
        build.compiled(number, 20.0)
    assert build.progress.line(21.0) == ""


def test_a_steady_build_is_estimated_right_from_a_tenth_on(tmp_path: Path) -> None:
    build = Build(tmp_path, 30, jobs=1)
    build.plan(100.0)
    for number in range(30):
        now = 100.0 + 7.0 * (number + 1)
        build.compiled(number, now)
        left = build.progress.left(now)
        assert left == (None if number < 2 else pytest.approx(7.0 * (29 - number)))


def test_two_at_a_time(tmp_path: Path) -> None:
    """Half of another one is done when one is: they end in turns."""
    build = Build(tmp_path, 40, jobs=2)
    build.plan(0.0)
    for number in range(8):
        build.compiled(number, 5.0 + 5.0 * (number + 0.5) - 5.0)
    # 8 done and half of one took 37.5 s. The last one of the other 32 ends alone.
    assert build.progress.left(37.5) == pytest.approx(37.5 * 32 / 8.5)


def test_time_goes_on_between_kernels(tmp_path: Path) -> None:
    build = Build(tmp_path, 2)
    build.plan(0.0)
    build.compiled(0, 10.0)
    assert build.progress.left(14.0) == pytest.approx(6.0)
    assert build.progress.left(30.0) == 0.0


def test_costly_kernels_weigh_more(tmp_path: Path) -> None:
    build = Build(tmp_path, 2)
    build.progress._recorded = lambda: {"k0.hsaco": 5.0, "k1.hsaco": 15.0}
    build.plan(0.0)
    build.compiled(0, 4.0)
    assert build.progress.left(4.0) == pytest.approx(12.0)


def test_a_group_counts_for_its_time_alone(tmp_path: Path) -> None:
    build = Build(tmp_path, 2)
    group = "bazel-out/k8-opt/bin/groups/g.bc"
    build.progress._recorded = lambda: {"k0.hsaco": 1.0, "k1.hsaco": 1.0, "groups/g.bc": 8.0}
    build.plan(0.0, dict.fromkeys(build.names, group))
    build.write(group)
    build.action(group, "HipCompileGroup")
    build.progress.read(16.0)
    assert build.progress.line(16.0) == "kernels: 0 of 2"
    build.compiled(0, 18.0)
    assert build.progress.left(18.0) == pytest.approx(2.0)


def test_kernels_that_are_up_to_date_do_not_count(tmp_path: Path) -> None:
    build = Build(tmp_path, 5)
    for name in build.names[:3]:
        build.write(name)
    build.plan(0.0)
    build.compiled(3, 5.0)
    assert build.progress.line(5.0).startswith("kernels: 1 of 2 ")
    # One that was there is made anew.
    build.compiled(0, 10.0)
    assert build.progress.line(10.0).startswith("kernels: 2 of 3 ")


def test_those_count_whose_headers_changed(tmp_path: Path) -> None:
    build = Build(tmp_path, 5)
    for name in build.names:
        build.write(name)
    build.plan(0.0)
    build.action(RECIPES[1], "CodeObjectRecipe")
    build.compiled(3, 5.0)
    assert build.progress.line(5.0) == "kernels: 1 of 2 (1 compiled), about 5 s left"
    build.action(RECIPES[0], "CodeObjectRecipe")
    build.progress.read(5.0)
    assert build.progress.line(5.0) == "kernels: 1 of 5 (1 compiled), about 20 s left"


def test_a_long_build_is_told_of_before_it_begins(tmp_path: Path) -> None:
    build = Build(tmp_path, 40, jobs=2, seconds=40.0)
    build.write(build.names[0])
    assert build.progress.whole() == 0.0
    build.plan(0.0)
    assert build.progress.whole() == pytest.approx(780.0)
    assert build.progress.line(0.0) == "kernels: 0 of 39, about 13 min where no cache has them"
    build.cached(1, 1.0)
    line = "kernels: 1 of 39 (1 from the disk cache), about 13 min where no cache has them"
    assert build.progress.line(1.0) == line


def test_an_action_that_failed_is_not_done(tmp_path: Path) -> None:
    build = Build(tmp_path, 2)
    build.plan(0.0)
    build.action(build.names[0], "HipCodeObject", success=False)
    build.progress.read(1.0)
    assert build.progress.line(1.0) == "kernels: 0 of 2"


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    build = Build(tmp_path, 2)
    build.plan(0.0)
    whole = build.file.read_text()
    build.action(build.names[0], "HipCodeObject")
    grown = build.file.read_text()
    build.file.write_text(grown[: len(whole) + 40])
    build.progress.read(1.0)
    assert build.progress.line(1.0) == "kernels: 0 of 2"
    build.file.write_text(grown)
    build.progress.read(2.0)
    assert build.progress.line(2.0).startswith("kernels: 1 of 2 ")


def test_a_machine_that_slows_down_is_noticed(tmp_path: Path) -> None:
    build = Build(tmp_path, 100)
    build.plan(0.0)
    for number in range(40):
        build.compiled(number, 1.0 + number)
    for number in range(40, 80):
        build.compiled(number, 40.0 + 5.0 * (number - 39))
    assert build.progress.left(240.0) == pytest.approx(20 * 5.0)


def test_a_kernel_that_was_quicker_than_the_plan(tmp_path: Path) -> None:
    build = Build(tmp_path, 5)
    build.compiled(0, 0.5)
    build.plan(1.0)
    build.compiled(1, 2.0)
    assert build.progress.line(2.0).startswith("kernels: 2 of 5 (2 compiled)")


def test_the_longest_compile_is_waited_for() -> None:
    pace = Pace(0.0, jobs=2)
    pace.add(10.0, 10.0)
    # Two at a time did 20 in 10 s. One goes on alone with what is left of it.
    assert pace.left([40.0, 1.0], 10.0, [Running(40.0, 10.0)]) == pytest.approx(30.0)
    # The other job may have a longer one still.
    assert pace.left([40.0, 35.0], 10.0, [Running(40.0, 10.0)]) == pytest.approx(35.0)
    assert pace.left([40.0, 30.0, 20.0], 10.0, [Running(40.0, 10.0)]) == pytest.approx(40.0)
    # It has had more than was expected.
    assert pace.left([40.0], 60.0, [Running(40.0, 70.0)]) == pytest.approx(2 * 2.0 * 60 / 48)


@pytest.mark.parametrize(
    ("options", "number"),
    [
        ([], 4),
        (["--jobs=3"], 3),
        (["--jobs=3", "--jobs=auto"], 4),
        (["--jobs=200"], 4),
        (["--jobs=200", "--remote_executor="], 4),
        (["--jobs=200", "--remote_executor=grpc://x"], 200),
    ],
)
def test_compiles_at_a_time(
    options: list[str], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    assert jobs(options) == number
