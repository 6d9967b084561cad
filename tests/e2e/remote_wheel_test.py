# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The wheel, with every action executed elsewhere, by a server that dies while it works.

It is the wheel of `smoke`; one that this machine made, with its disk cache, stands beside it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.clone import COMPILED, Clone, sha256, shared_disk_cache
from toolchains.remote.servers import Justbuild

_BUILD = ("--//kernels:variants=smoke", "//python:attn_wheel")
# Numbers of actions that have begun: at each the server is killed, and started again.
_DEATHS = (20, 70, 120)


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


def test_the_wheel(server: Justbuild, tmp_path: Path) -> None:
    here = Clone(tmp_path, "here", shared_disk_cache())
    elsewhere = Clone(tmp_path, "elsewhere")
    ended, died = threading.Event(), list[int]()
    dying = threading.Thread(target=_die, args=(server, ended, died))
    try:
        here.build(*_BUILD)
        dying.start()
        built = elsewhere.build(*server.options, "--jobs=4", *_BUILD)
        ended.set()
        dying.join()
        assert died == list(_DEATHS)
        assert {spawn.runner for spawn in built.all} <= {"remote", "remote cache hit"}
        assert all(built.executed[mnemonic] for mnemonic in COMPILED - {"HipCompileGroup"})
        assert sha256(elsewhere.wheel()) == sha256(here.wheel())
    finally:
        ended.set()
        here.close()
        elsewhere.close()
