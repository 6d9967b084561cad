# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The time of a build on real workers, against the simulation of //kernels:cluster.

The actions are those that the simulation has of a wheel of core, each after those whose results it
reads. Their commands wait for the test, which lets each end when its estimated time is over, by a
clock that stands still until all workers have work again. So Bazel, the server and the workers
decide what runs when, and the speed of this machine does not count.

Of the actions that are ready at the same moment Bazel begins with others than the simulation: so
the time is held against a simulation in the order in which they began.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import heapq
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.ck_fmha.groups.cost import FIGURES as COSTS
from kernels.ck_fmha.groups.cost import CostModel
from kernels.cluster.graph import FIGURES, Figures, graph, instances
from kernels.cluster.schedule import Action, Costs, makespan
from tests.e2e.clone import Clone, Spawns
from tests.e2e.elsewhere import clone as clone  # a fixture
from toolchains.remote.grid import Grid

_WORKERS = (1, 2, 4, 8)
# The share by which the simulation may be off: an action that is ready late may overtake one that
# Bazel has not sent yet.
_OFF = 0.05
# Until free workers have begun what is ready.
_PATIENCE = 300

_RULE = """
def _action(ctx):
    output = ctx.actions.declare_file(ctx.label.name + ".done")
    ctx.actions.run(
        executable = "/bin/sh",
        arguments = ["-c", "read line < %s && : > %s" % (ctx.attr.gate, output.path)],
        inputs = ctx.files.after,
        outputs = [output],
        mnemonic = "Waited",
    )
    return [DefaultInfo(files = depset([output]))]

action = rule(
    implementation = _action,
    attrs = {"after": attr.label_list(), "gate": attr.string()},
)
"""


def estimated() -> list[Action]:
    pool = RecordedPool(Path(os.environ["POOL"]).read_text("utf-8"))
    figures = Figures.read(FIGURES.read_text("utf-8"))
    model = CostModel(COSTS.read_text("utf-8"), pool.rows)
    rows = instances("core", Path(os.environ["CORE"]), pool, ["gfx942"])
    return graph(rows, pool, model, figures, most=8)


class Gate:
    """A pipe: a command reads a line of it, and ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: int | None = None
        self._is_open = False
        os.mkfifo(path)

    def is_waited_at(self) -> bool:
        """Whether the command has begun."""
        if self._writer is None:
            try:
                self._writer = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:  # It has no reader.
                    raise
        return self._writer is not None

    def open(self) -> None:
        """Lets the command end: now, or when it comes."""
        if self._is_open:
            return
        if self._writer is None:
            self._writer = os.open(self._path, os.O_RDWR)
        os.write(self._writer, b"\n")
        self._is_open = True

    def remove(self) -> None:
        """No command is to come any more."""
        if self._writer is not None:
            os.close(self._writer)
        self._path.unlink()


@contextlib.contextmanager
def gates(folder: Path, number: int) -> Iterator[list[Gate]]:
    made = [Gate(folder / str(at)) for at in range(number)]
    try:
        yield made
    finally:
        for gate in made:
            gate.remove()


def write(package: Path, actions: Sequence[Action], folder: Path) -> None:
    """Writes a package with a target for each action, whose gate is in the folder."""
    package.mkdir()
    (package / "action.bzl").write_text(_RULE)
    lines = ['load(":action.bzl", "action")']
    for at, action in enumerate(actions):
        after = [f":{needed}" for needed in action.after]
        lines.append(f'action(name = "{at}", gate = "{folder / str(at)}", after = {after})')
    (package / "BUILD.bazel").write_text("\n".join(lines) + "\n")


def begin(ready: list[int], made: Sequence[Gate], number: int, built: Future[Spawns]) -> list[int]:
    """Waits until workers have begun so many of the actions that are ready. Returns these.

    Raises AssertionError if they do not, or if the build ends before.
    """
    deadline = time.monotonic() + _PATIENCE
    while len(begun := [at for at in ready if made[at].is_waited_at()]) < number:
        if built.done():
            raise AssertionError("the build has ended") from built.exception()
        assert time.monotonic() < deadline, f"{begun} of {ready} have begun, not {number} of them"
        time.sleep(0.02)
    assert len(begun) == number
    return begun


def follow(
    actions: Sequence[Action], made: Sequence[Gate], workers: int, built: Future[Spawns]
) -> tuple[float, list[int]]:
    """Lets each action end at its time. Returns the time by that clock when all have, and the
    actions in the order in which they began."""
    clock = 0.0
    order: list[int] = []
    waiting, done = set(range(len(actions))), set[int]()
    running: list[tuple[float, int]] = []  # a heap, by their ends
    while waiting or running:
        ready = [at for at in sorted(waiting) if done.issuperset(actions[at].after)]
        free = workers - len(running)
        for at in begin(ready, made, min(free, len(ready)), built):
            waiting.remove(at)
            order.append(at)
            heapq.heappush(running, (clock + actions[at].seconds, at))
        clock, ended = heapq.heappop(running)
        done.add(ended)
        made[ended].open()
    return clock, order


def in_order(actions: Sequence[Action], order: Sequence[int]) -> list[Action]:
    places = {at: place for place, at in enumerate(order)}
    return [
        dataclasses.replace(
            actions[at], after=tuple(places[needed] for needed in actions[at].after)
        )
        for at in order
    ]


def build(clone: Clone, grid: Grid, number: int) -> Spawns:
    """The server is asked for each action as soon as it is ready."""
    return clone.build(
        *grid.options, "--noremote_accept_cached", f"--jobs={number}", "//waited:all"
    )


def took(
    clone: Clone, grid: Grid, actions: Sequence[Action], folder: Path
) -> tuple[float, list[int]]:
    """Executes all actions by the workers there are; returns what `follow` does."""
    clone.bazel("clean")
    with gates(folder, len(actions)) as made, ThreadPoolExecutor(1) as other:
        built = other.submit(build, clone, grid, len(actions))
        try:
            followed = follow(actions, made, len(grid.workers), built)
        finally:
            for gate in made:
                gate.open()
    assert [spawn.runner for spawn in built.result().all] == ["remote"] * len(actions)
    return followed


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with Grid(tmp_path_factory.mktemp("grid")) as grid:
        yield grid


def test_the_time_on_some_workers(
    clone: Clone, grid: Grid, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    actions = estimated()
    write(clone.root / "waited", actions, tmp_path)
    off: list[str] = []
    for number in _WORKERS:
        while len(grid.workers) < number:
            grid.add("default")
        real, order = took(clone, grid, actions, tmp_path)
        simulated = makespan(actions, number, Costs())
        ordered = makespan(in_order(actions, order), number, Costs())
        with capsys.disabled():
            print(
                f"\n{number} workers: {real:.1f} s; simulated: {ordered:.1f} s in that order, "
                f"{simulated:.1f} s in its own"
            )
        if real != pytest.approx(ordered, rel=_OFF):
            off.append(f"{number} workers: {real:.1f} s, simulated {ordered:.1f} s")
    assert not off
