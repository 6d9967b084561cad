# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Servers and networks that fail, while the wheel is built from a full cache: the right wheel.

Lost results are made again. So that no kernel is compiled, compilers' outputs are spared where a
fault costs the result; faults that pass at a later attempt hit everything.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator, Sequence

import pytest

from tests.e2e import clone
from tests.e2e.remote_cache.conftest import Reference, Stranger
from tests.e2e.remote_cache.sharing_test import check_all_hits
from toolchains.remote import servers
from toolchains.remote.proxy import Fault, HttpProxy, Plan, TcpProxy

DOWNLOAD_ALL = "--remote_download_outputs=all"

# Over all tests of this file; the last one looks.
injected: collections.Counter[str] = collections.Counter()


@pytest.fixture(autouse=True)
def counted(proxy: HttpProxy) -> Iterator[None]:
    yield
    injected.update(fault.name for fault in proxy.injected.elements())


def cheap_actions(reference: Reference) -> set[str]:
    """Actions of programs in Python: a loss costs seconds."""
    return {s.action for s in reference.actions.all if s.mnemonic not in clone.COMPILED}


def cheap_files(reference: Reference) -> set[str]:
    files: dict[bool, set[str]] = {True: set(), False: set()}
    for spawn in reference.actions.all:
        files[spawn.mnemonic in clone.COMPILED] |= {digest for _, digest in spawn.outputs}
    return files[False] - files[True]


def first_attempts(faults: Sequence[Fault], attempts: int) -> Plan:
    """The first requests for each path fail, in turn by each of the faults."""
    asked: collections.Counter[str] = collections.Counter()

    def plan(_method: str, path: str) -> Fault | None:
        asked[path] += 1
        turn = len(asked) + asked[path]
        return faults[turn % len(faults)] if asked[path] <= attempts else None

    return plan


def always(faults: Sequence[Fault], kind: str, hashes: Iterable[str]) -> Plan:
    """Every download of these files, or of these actions' results, fails by one of the faults."""
    paths = {f"/{kind}/{h}": faults[n % len(faults)] for n, h in enumerate(sorted(hashes))}
    return lambda method, path: paths.get(path) if method == "GET" else None


def check_made_again(stranger: Stranger, reference: Reference) -> None:
    """The right wheel; something was made again, and no compiler ran."""
    assert clone.sha256(stranger.wheel()) == reference.sha256
    executed = stranger.spawns().executed
    assert executed and not clone.COMPILED & set(executed), executed


@pytest.fixture
def forgetful(stranger: Stranger) -> Iterator[Stranger]:
    """Ends the Bazel server after the test: it remembers which files a cache did not have, and
    takes no result with such a file any more."""
    yield stranger
    stranger.bazel("shutdown")


def test_what_passes_at_a_later_attempt_costs_nothing(
    stranger: Stranger, reference: Reference, proxy: HttpProxy
) -> None:
    faults = [Fault.BROKEN, Fault.DROPPED]
    proxy.plan = first_attempts(faults, 2)
    stranger.remote(proxy.url, DOWNLOAD_ALL)
    check_all_hits(stranger, reference)
    assert sum(proxy.injected.values()) >= 2 * len({s.action for s in reference.actions.all})
    assert all(proxy.injected[fault] for fault in faults)


def test_a_slow_server(stranger: Stranger, reference: Reference, proxy: HttpProxy) -> None:
    slow = sorted(cheap_actions(reference))[:20]
    proxy.plan = always([Fault.SLOW], "ac", slow)
    stranger.remote(proxy.url)
    check_all_hits(stranger, reference)
    assert proxy.injected[Fault.SLOW] == len(slow)


def test_files_that_are_not_what_was_promised(
    forgetful: Stranger, reference: Reference, proxy: HttpProxy
) -> None:
    faults = [Fault.CORRUPTED, Fault.SHORTENED, Fault.CUT, Fault.HTML, Fault.MISSING]
    proxy.plan = always(faults, "cas", cheap_files(reference))
    forgetful.remote(proxy.url, DOWNLOAD_ALL)
    check_made_again(forgetful, reference)
    assert all(proxy.injected[fault] for fault in faults), proxy.injected


def test_results_that_cannot_be_read(
    stranger: Stranger, reference: Reference, proxy: HttpProxy
) -> None:
    faults = [Fault.SHORTENED, Fault.CUT, Fault.HTML, Fault.UNAUTHORIZED, Fault.FORBIDDEN]
    proxy.plan = always(faults, "ac", cheap_actions(reference))
    stranger.remote(proxy.url)
    check_made_again(stranger, reference)
    assert all(proxy.injected[fault] for fault in faults), proxy.injected


def test_files_that_were_evicted_while_their_results_stayed(
    forgetful: Stranger, reference: Reference, proxy: HttpProxy
) -> None:
    """Bazel relies on results without downloading their files, and then needs them after all.

    Each level of the wheel's inputs is an attempt more: two levels show it.
    """
    levels = ("Wheel", "WheelManifest")
    lost = [d for s in reference.actions.all if s.mnemonic in levels for _, d in s.outputs]
    proxy.plan = always([Fault.MISSING], "cas", lost)
    forgetful.remote(proxy.url)
    check_made_again(forgetful, reference)
    assert proxy.injected[Fault.MISSING] >= len(lost)


def test_a_server_that_takes_nothing(
    stranger: Stranger, reference: Reference, proxy: HttpProxy
) -> None:
    hidden = always([Fault.MISSING], "ac", cheap_actions(reference))
    refusals = first_attempts([Fault.FULL, Fault.TOO_LARGE, Fault.FORBIDDEN], 1_000)
    proxy.plan = lambda method, path: (refusals if method == "PUT" else hidden)(method, path)
    got = stranger.remote(proxy.url, "--config=ci")
    check_made_again(stranger, reference)
    for fault in (Fault.FULL, Fault.TOO_LARGE, Fault.FORBIDDEN):
        assert proxy.injected[fault]
    assert "WARNING: Remote Cache: " in got.stdout, got.stdout[-2000:]


def test_a_server_that_is_killed_while_the_wheel_is_built(
    stranger: Stranger, reference: Reference, proxy: HttpProxy, nginx: servers.Nginx
) -> None:
    """It ends when the wheel's result is asked for: compilers' outputs have come."""
    (last,) = (f"/ac/{s.action}" for s in reference.actions.all if s.mnemonic == "Wheel")

    def plan(_method: str, path: str) -> None:
        if path == last:
            nginx.kill()

    proxy.plan = plan
    try:
        stranger.remote(proxy.url, DOWNLOAD_ALL)
    finally:
        nginx.start()
    check_made_again(stranger, reference)


def test_grpc_connections_that_break(
    stranger: Stranger, reference: Reference, buildgrid: servers.BuildGrid
) -> None:
    with TcpProxy(buildgrid.address) as proxy:
        proxy.cut_after = [10_000, 50_000]
        stranger.remote(f"grpc://{proxy.address}", DOWNLOAD_ALL)
        assert not proxy.cut_after
        assert proxy.cuts == 2
    assert clone.sha256(stranger.wheel()) == reference.sha256
    assert not clone.COMPILED & set(stranger.spawns().executed), stranger.spawns().executed


def test_enough_was_injected() -> None:
    print(dict(injected))
    assert sum(injected.values()) >= 300, injected
