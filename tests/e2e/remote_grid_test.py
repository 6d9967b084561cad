# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A build by two workers of a cluster, one of which is killed meanwhile: it costs time alone.

BuildGrid has its queue in PostgreSQL; the workers are buildbox-worker.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

import pytest

from tests.e2e import executed
from tests.e2e.clone import Clone, Spawns
from tests.e2e.elsewhere import clone as clone  # a fixture
from toolchains.remote.grid import Grid


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with Grid(tmp_path_factory.mktemp("grid")) as grid:
        grid.add("default")
        grid.add("large-memory")
        yield grid


@contextlib.contextmanager
def meanwhile(ready: Callable[[], bool], deed: Callable[[], object]) -> Iterator[None]:
    """Does something once, as soon as it is ready, while the body runs."""
    ended, done = threading.Event(), list[bool]()

    def wait() -> None:
        while not ended.wait(0.02):
            if ready():
                deed()
                done.append(True)
                return

    waiting = threading.Thread(target=wait)
    waiting.start()
    try:
        yield
    finally:
        ended.set()
        waiting.join()
    assert done


def is_as_here(clone: Clone, built: Spawns) -> bool:
    assert {spawn.runner for spawn in built.all} == {"remote"}
    return executed.outputs_of(clone) == executed.outputs_here()


def test_each_pool_has_its_worker(clone: Clone, grid: Grid) -> None:
    built = executed.build(clone, *grid.options)
    assert is_as_here(clone, built)
    pools = [dict(spawn.properties)["pool"] for spawn in built.all]
    assert [worker.executed() for worker in grid.workers] == [
        pools.count("default"),
        pools.count("large-memory"),
    ]


def test_results_are_kept(clone: Clone, grid: Grid) -> None:
    clone.bazel("clean")
    built = executed.build(clone, *grid.options)
    assert built.all and not built.executed


def test_a_worker_that_is_killed_while_an_action_runs(clone: Clone, grid: Grid) -> None:
    """Another one of its pool gets the action."""
    clone.bazel("clean")
    worker = grid.workers[0]

    def fail() -> None:
        worker.kill()
        grid.add("default")

    with meanwhile(worker.is_busy, fail):
        built = executed.build(clone, *grid.options, "--noremote_accept_cached")
    assert is_as_here(clone, built)
