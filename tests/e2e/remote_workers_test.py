# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The time of a build on real workers, against the simulation of //kernels:cluster.

The actions are those that the simulation has of a wheel of core, each after those whose results it
reads. Their commands sleep, so that more workers than this machine has processors work at a time,
whatever else it does. One worker gives the cost of an action beside its command; the time on more
of them is predicted. Prints what kernels/cluster/figures.toml has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import pytest

from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.ck_fmha.groups.cost import FIGURES as COSTS
from kernels.ck_fmha.groups.cost import CostModel
from kernels.cluster.graph import FIGURES, Figures, graph, instances
from kernels.cluster.schedule import Action, Costs, makespan
from tests.e2e.clone import Clone
from tests.e2e.elsewhere import clone as clone  # a fixture
from toolchains.remote import execution_log
from toolchains.remote.grid import Grid

# Workers -> the share by which the simulation may be off. Bazel has an order of its own for actions
# that are ready at the same moment: for four workers that was .11. The time on the most of them is
# less of the work than of the longest chain of actions. There the client and the server are waited
# for as well, which the simulation does not have; one without chains would be off by a quarter.
_WORKERS = {1: 0.01, 2: 0.1, 4: 0.15, 8: 0.2}
# Of an action's estimated time, so that all is done in ten minutes.
_SLEPT = 0.5

_RULE = """
def _action(ctx):
    output = ctx.actions.declare_file(ctx.label.name + ".done")
    ctx.actions.run(
        executable = "/bin/sh",
        arguments = ["-c", "/bin/sleep %s; : > %s" % (ctx.attr.seconds, output.path)],
        inputs = ctx.files.after,
        outputs = [output],
        mnemonic = "Slept",
    )
    return [DefaultInfo(files = depset([output]))]

action = rule(
    implementation = _action,
    attrs = {"after": attr.label_list(), "seconds": attr.string()},
)
"""


def slept() -> list[Action]:
    pool = RecordedPool(Path(os.environ["POOL"]).read_text("utf-8"))
    figures = Figures.read(FIGURES.read_text("utf-8"))
    model = CostModel(COSTS.read_text("utf-8"), pool.rows)
    rows = instances("core", Path(os.environ["CORE"]), pool, ["gfx942"])
    return [
        Action(action.kind, round(_SLEPT * action.seconds, 3), action.after)
        for action in graph(rows, pool, model, figures, most=8)
    ]


def write(package: Path, actions: Sequence[Action]) -> None:
    """Writes a package with a target for each action."""
    package.mkdir()
    (package / "action.bzl").write_text(_RULE)
    lines = ['load(":action.bzl", "action")']
    for at, action in enumerate(actions):
        after = [f":{needed}" for needed in action.after]
        lines.append(f'action(name = "{at}", seconds = "{action.seconds:.3f}", after = {after})')
    (package / "BUILD.bazel").write_text("\n".join(lines) + "\n")


def build(clone: Clone, grid: Grid, number: int) -> float:
    """Executes all actions; returns the seconds from the start of the first to the last end."""
    clone.bazel("clean")
    clone.build(*grid.options, "--noremote_accept_cached", "--jobs=32", "//slept:all")
    starts, ends = list[float](), list[float]()
    for entry in execution_log.entries(clone.root.parent / "execution.json"):
        assert entry["runner"] == "remote"
        starts.append(datetime.fromisoformat(entry["metrics"]["startTime"]).timestamp())
        ends.append(starts[-1] + float(entry["metrics"]["totalTime"].removesuffix("s")))
    assert len(ends) == number
    return max(ends) - min(starts)


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with Grid(tmp_path_factory.mktemp("grid")) as grid:
        yield grid


def test_the_time_on_some_workers(
    clone: Clone, grid: Grid, capsys: pytest.CaptureFixture[str]
) -> None:
    actions = slept()
    write(clone.root / "slept", actions)
    real: dict[int, float] = {}
    for number in _WORKERS:
        while len(grid.workers) < number:
            grid.add("default")
        real[number] = build(clone, grid, len(actions))
    work = sum(action.seconds for action in actions)
    costs = Costs(action=(real[1] - work) / len(actions))
    simulated = {number: makespan(actions, number, costs) for number in _WORKERS}
    with capsys.disabled():
        print(f"\n# {len(actions)} actions, {work:.0f} s; each costs {costs.action:.2f} s more")
        for number in _WORKERS:
            print(
                f"\n[[clusters]]\nworkers = {number}\n"
                f"real = {real[number]:.1f}\nsimulated = {simulated[number]:.1f}"
            )
    for number, share in _WORKERS.items():
        assert simulated[number] == pytest.approx(real[number], rel=share)
