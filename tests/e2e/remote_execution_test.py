# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Actions that a real server executes, which has neither a compiler nor this HOME.

A fresh clone builds a shared object and a kernel: by compilers, linkers and Python programs.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.clone import Clone, Spawns, sha256
from toolchains.remote.servers import Justbuild

_TARGETS = os.environ["EXECUTED"].split()
_FILES = (
    "kernels/sum_heads/attn_sum_heads_fp16.gfx942.hsaco",
    "tests/support/runtime/libamdhip64.so",
)
_TEST = "//aiter/runtime/store:digest_test"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Justbuild]:
    with Justbuild(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    clone = Clone(tmp_path_factory.mktemp("clone"), "elsewhere")
    yield clone
    clone.close()


def build(clone: Clone, server: Justbuild) -> Spawns:
    return clone.build(*server.options, "--remote_download_outputs=all", *_TARGETS)


def outputs(folder: Path) -> dict[str, str]:
    """Files of the targets below bazel-bin, by their digests."""
    return {name: sha256(folder / name) for name in _FILES}


@pytest.fixture(scope="module")
def built(clone: Clone, server: Justbuild) -> Spawns:
    return build(clone, server)


def test_all_actions_are_executed_there(built: Spawns) -> None:
    mnemonics = {"CppCompile", "CppLink", "HipCodeObject"}
    assert mnemonics <= {spawn.mnemonic for spawn in built.all}
    assert {spawn.runner for spawn in built.all} == {"remote"}


def test_each_pool_gets_its_actions(built: Spawns) -> None:
    pools = {spawn.mnemonic: dict(spawn.properties)["pool"] for spawn in built.all}
    assert pools["HipCodeObject"] == "large-memory"
    assert pools["CppCompile"] == pools["CppLink"] == "default"


def test_the_bytes_are_those_of_actions_here(clone: Clone, built: Spawns) -> None:
    assert outputs(clone.root / "bazel-bin") == outputs(Path.cwd())


def test_nothing_is_executed_twice(clone: Clone, server: Justbuild, built: Spawns) -> None:
    clone.bazel("clean")
    again = build(clone, server)
    assert again.all and not again.executed


def test_a_test_is_executed_there(clone: Clone, server: Justbuild, built: Spawns) -> None:
    log = clone.root.parent / "test.json"
    clone.bazel(
        "test",
        *server.options,
        "--strategy=TestRunner=remote",
        f"--execution_log_json_file={log}",
        _TEST,
    )
    # The test, and a program that makes the XML of its log.
    ran = [s for s in Spawns(log).all if s.mnemonic == "TestRunner" and s.label == _TEST]
    assert ran and {spawn.runner for spawn in ran} == {"remote"}


def test_a_server_that_is_started_again_with_nothing(
    clone: Clone, server: Justbuild, built: Spawns
) -> None:
    before = outputs(clone.root / "bazel-bin")
    clone.bazel("clean")
    server.kill()
    server.forget()
    server.start()
    again = build(clone, server)
    assert again.executed == built.executed
    assert outputs(clone.root / "bazel-bin") == before


def test_a_server_that_is_down_is_named_in_time(clone: Clone, tmp_path: Path) -> None:
    down = Justbuild(tmp_path / "down")
    started = time.monotonic()
    done = clone.bazel("build", *down.options, _TARGETS[0], expect=1)
    assert time.monotonic() - started < 30
    assert re.search(f"bazelw: error: --remote_executor={down.url}: .*start it", done.stdout)
