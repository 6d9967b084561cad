# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The wheel, with every action executed elsewhere, by a server that dies while it works.

It is the wheel of `smoke`; one that this machine made, with its disk cache, stands beside it. A
death may end the build: docs/scale.md, "When the executor fails". The same build is started again
then, as a user does.
"""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.clone import COMPILED, Clone, Spawns, sha256, shared_disk_cache
from toolchains.remote.servers import Justbuild

_BUILD = ("--//kernels:variants=smoke", "//python:attn_wheel")
# Numbers of actions that have begun: at each the server is killed, and started again.
_DEATHS = (20, 70, 120)
# Actions at a time.
_JOBS = 4
# The words of justbuild for an action that began before it died, and Bazel's exit code for it.
_FORGOTTEN, _REMOTE_ERROR = "not found in internal cache", 34


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Justbuild]:
    with Justbuild(tmp_path / "server") as server:
        yield server


def _die(server: Justbuild, ended: threading.Event, died: list[int]) -> None:
    """Kills the server at each of _DEATHS, and starts it again."""
    for death in _DEATHS:
        while server.begun() < death:
            if ended.wait(0.2):
                return
        server.kill()
        died.append(death)
        time.sleep(1)
        server.start()


def _built(elsewhere: Clone, server: Justbuild) -> list[Spawns]:
    """Starts the build until it succeeds; each failure is that of one death."""
    log = elsewhere.root.parent / "execution.json"
    options = (*server.options, f"--jobs={_JOBS}", f"--execution_log_json_file={log}")
    builds: list[Spawns] = []
    while True:
        done = elsewhere.bazel("build", *options, *_BUILD, expect=None)
        builds.append(Spawns(log, done.stdout))
        if not done.returncode:
            return builds
        assert done.returncode == _REMOTE_ERROR and _FORGOTTEN in done.stdout, done.stdout[-8000:]
        assert len(builds) <= len(_DEATHS), done.stdout[-8000:]


def test_the_wheel(server: Justbuild, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = Clone(tmp_path, "here", shared_disk_cache())
    elsewhere = Clone(tmp_path, "elsewhere")
    ended, died = threading.Event(), list[int]()
    dying = threading.Thread(target=_die, args=(server, ended, died))
    try:
        here.build(*_BUILD)
        dying.start()
        builds = _built(elsewhere, server)
        ended.set()
        dying.join()
        assert died == list(_DEATHS)
        spawns = [spawn for built in builds for spawn in built.all]
        assert {spawn.runner for spawn in spawns} <= {"remote", "remote cache hit"}
        executed = collections.Counter(spawn.action for spawn in spawns if not spawn.cached)
        # An action that had no answer is in the log without its hash.
        assert executed.pop("", 0) >= len(builds) - 1
        with capsys.disabled():
            print(
                f"\n{len(builds)} builds, {len(executed)} actions executed and answered, "
                f"{server.begun()} begun"
            )
        # A result is kept; an action that a death or the end of a build cut off begins again.
        assert set(executed.values()) == {1}
        assert server.begun() <= len(executed) + (len(_DEATHS) + len(builds) - 1) * _JOBS
        mnemonics = {spawn.mnemonic for spawn in spawns if not spawn.cached}
        assert COMPILED - {"HipCompileGroup"} <= mnemonics
        assert sha256(elsewhere.wheel()) == sha256(here.wheel())
    finally:
        ended.set()
        here.close()
        elsewhere.close()
