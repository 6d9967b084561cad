# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Actions that a real server executes, which has neither a compiler nor this HOME.

A fresh clone builds a shared object and a kernel: by compilers, linkers and Python programs.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e import executed, other_system
from tests.e2e.clone import Clone, Spawns
from tests.e2e.elsewhere import clone as clone  # a fixture
from toolchains.remote.proxy import TcpProxy
from toolchains.remote.servers import NOWHERE, Justbuild, runfile

_TEST = "//aiter/runtime/store:digest_test"
# Programs that Bazel's scripts around a test call.
_OF_TESTS = (
    *("bash", "cat", "cp", "date", "dirname", "env", "grep"),
    *("ln", "mkdir", "rm", "sed", "sleep", "tee", "tr"),
)


def bare_root(folder: Path, programs: Sequence[str] = ()) -> list[str]:
    """Starts a program where there is nothing but /bin/sh, libraries, the server and a folder.

    `programs` are there as well, of another Debian release.
    """
    system, server = other_system.tree(), runfile("JUSTBUILD").resolve().parents[1]
    libraries = system / other_system.LIBRARIES
    seen = {
        "/bin/sh": system / "usr/bin/dash",
        **{f"/usr/bin/{name}": system / "usr/bin" / name for name in programs},
        "/lib/x86_64-linux-gnu": libraries,
        "/lib64/ld-linux-x86-64.so.2": libraries / "ld-linux-x86-64.so.2",
        str(server): server,
    }
    mounts = [word for at, file in seen.items() for word in ("--ro-bind", str(file), at)]
    return other_system.root(["--share-net", *mounts, "--bind", str(folder), str(folder)], NOWHERE)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Justbuild]:
    folder = tmp_path_factory.mktemp("server")
    with Justbuild(folder, bare_root(folder)) as server:
        yield server


@pytest.fixture(scope="module")
def proxy(server: Justbuild) -> Iterator[TcpProxy]:
    """Counts what the server is sent."""
    with TcpProxy(server.address) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def built(clone: Clone, server: Justbuild, proxy: TcpProxy) -> Spawns:
    return executed.build(clone, *server.options_at(proxy.address))


def test_the_server_has_neither_compilers_nor_python_nor_this_home(tmp_path: Path) -> None:
    command = [*bare_root(tmp_path), "/bin/sh", "-c", "echo /bin/* /usr/* /opt/* /home/* $HOME"]
    seen = subprocess.run(command, text=True, capture_output=True, check=True).stdout
    assert seen.split() == ["/bin/sh", "/usr/*", "/opt/*", "/home/*", NOWHERE["HOME"]]


def test_all_actions_are_executed_there(built: Spawns) -> None:
    mnemonics = {"CppCompile", "CppLink", "HipCodeObject"}
    assert mnemonics <= {spawn.mnemonic for spawn in built.all}
    assert {spawn.runner for spawn in built.all} == {"remote"}


def test_each_pool_gets_its_actions(built: Spawns) -> None:
    pools = {spawn.mnemonic: dict(spawn.properties)["pool"] for spawn in built.all}
    assert pools["HipCodeObject"] == "large-memory"
    assert pools["CppCompile"] == pools["CppLink"] == "default"


def test_the_bytes_are_those_of_actions_here(clone: Clone, built: Spawns) -> None:
    assert executed.outputs_of(clone) == executed.outputs_here()


def test_inputs_are_uploaded_once(
    clone: Clone, server: Justbuild, proxy: TcpProxy, built: Spawns
) -> None:
    uploaded = proxy.received
    print(f"{uploaded / 1e6:.1f} MB uploaded for {len(built.all)} actions")
    assert 50e6 < uploaded < 400e6
    clone.bazel("clean")
    server.forget_results()
    again = executed.build(clone, *server.options_at(proxy.address))
    assert again.executed == built.executed
    print(f"{(proxy.received - uploaded) / 1e6:.3f} MB for the same actions again")
    assert proxy.received - uploaded < 2e6


def test_nothing_is_executed_twice(clone: Clone, server: Justbuild, built: Spawns) -> None:
    clone.bazel("clean")
    again = executed.build(clone, *server.options)
    assert again.all and not again.executed


def test_a_test_is_executed_there(clone: Clone, server: Justbuild, built: Spawns) -> None:
    """By a server that is started again where there is bash."""
    server.kill()
    server.wrapper = bare_root(server.folder, _OF_TESTS)
    server.start()
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
    before = executed.outputs_of(clone)
    clone.bazel("clean")
    server.kill()
    server.forget()
    server.start()
    again = executed.build(clone, *server.options)
    assert again.executed == built.executed
    assert executed.outputs_of(clone) == before


def test_a_server_that_is_down_is_named_in_time(clone: Clone, tmp_path: Path) -> None:
    down = Justbuild(tmp_path / "down")
    started = time.monotonic()
    done = clone.bazel("build", *down.options, executed.TARGETS[0], expect=1)
    assert time.monotonic() - started < 30
    assert re.search(f"bazelw: error: --remote_executor={down.url}: .*start it", done.stdout)
