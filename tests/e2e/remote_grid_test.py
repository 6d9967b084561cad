# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A build by two workers of a cluster, parts of which fail meanwhile: it costs time alone.

BuildGrid has its queue in PostgreSQL; the workers are buildbox-worker.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.e2e import executed
from tests.e2e.clone import Clone, Spawns
from tests.e2e.elsewhere import clone as clone  # a fixture
from toolchains.remote.grid import Grid, Worker

# Every action anew, whatever the server's results are.
_ANEW = "--noremote_accept_cached"
# A server in Python takes longer to start than --config=rbe waits.
_PATIENT = "--remote_retries=30"


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


def worker_of(grid: Grid, pool: str) -> Worker:
    (worker,) = (w for w in grid.workers if w.process and w.pools == (pool,))
    return worker


def _kill_the_worker(grid: Grid) -> None:
    worker_of(grid, "default").kill()
    grid.add("default")


def _lose_the_database(grid: Grid) -> None:
    grid.queue.kill()
    # The server looks at its workers every second.
    deadline = time.monotonic() + 60
    while b"RetriableDatabaseError" not in (grid.executor.folder / "log").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    grid.queue.start()


def _restart_the_server(grid: Grid) -> None:
    grid.executor.kill()
    grid.executor.start()


@pytest.mark.parametrize("fail", [_kill_the_worker, _lose_the_database, _restart_the_server])
def test_failures_while_an_action_runs(
    clone: Clone, grid: Grid, fail: Callable[[Grid], None]
) -> None:
    clone.bazel("clean")
    with meanwhile(worker_of(grid, "default").is_busy, lambda: fail(grid)):
        built = executed.build(clone, *grid.options, _ANEW, _PATIENT)
    assert is_as_here(clone, built)
    assert worker_of(grid, "default").executed()
    # They have outlived it.
    assert all(worker.process.poll() is None for worker in grid.workers if worker.process)


def test_a_worker_that_cannot_execute_what_it_says(clone: Clone, grid: Grid) -> None:
    clone.bazel("clean")
    honest = worker_of(grid, "large-memory")
    honest.kill()
    # It alone is there until it was asked.
    liar = grid.add("large-memory", lies=True)
    with meanwhile(lambda: liar.failed() > 0, honest.start):
        built = executed.build(clone, *grid.options, _ANEW)
    liar.kill()
    assert is_as_here(clone, built)


def test_a_pool_that_the_server_does_not_have(clone: Clone, grid: Grid) -> None:
    package = clone.root / "elsewhere"
    package.mkdir()
    (package / "BUILD.bazel").write_text(
        'platform(name = "workers", exec_properties = {"pool": "of-another-name"},'
        ' parents = ["//toolchains/remote:workers"])\n'
    )
    command = (
        *("build", *grid.options, _ANEW, executed.TARGETS[1]),
        "--extra_execution_platforms=//elsewhere:workers",
    )
    clone.bazel("clean")
    clone.bazel(*command, "--nobuild")
    started = time.monotonic()
    refused = clone.bazel(*command, expect=None)
    assert time.monotonic() - started < 30
    assert refused.returncode == 34, refused.stdout
    assert "of-another-name" in refused.stdout
