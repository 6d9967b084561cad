# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""With a full cache server a stranger runs nothing, and downloads the wheel and little else."""

from __future__ import annotations

from tests.e2e import clone
from tests.e2e.remote_cache.conftest import Reference, Stranger
from toolchains.remote import servers
from toolchains.remote.proxy import Fault, HttpProxy, TcpProxy


def check_all_hits(stranger: Stranger, reference: Reference) -> None:
    spawns = stranger.spawns()
    assert not spawns.executed
    assert spawns.cached == reference.actions.cached
    assert all(spawns.cached[mnemonic] for mnemonic in clone.COMPILED), spawns.cached
    assert clone.sha256(stranger.wheel()) == reference.sha256


def test_http(stranger: Stranger, reference: Reference, proxy: HttpProxy) -> None:
    before = stranger.cpu_seconds()
    print(f"CPU seconds: {before:.0f} to fetch repositories and build in a clean clone", end="")
    stranger.remote(proxy.url)
    print(f", {stranger.cpu_seconds() - before:.0f} to load, analyse and build once more")
    check_all_hits(stranger, reference)
    needed, everything = reference.bytes_needed(), reference.bytes_in_all()
    assert needed <= proxy.sent["cas"] < 1.1 * needed < 0.5 * everything
    print(f"downloaded {proxy.sent} of {everything} bytes in {len(proxy.requests)} requests")
    assert proxy.sent["ac"] < 2_000 * len(reference.actions.all)
    assert {method for method, _ in proxy.requests} == {"GET"}, "a reader writes nothing"


def test_grpc(stranger: Stranger, reference: Reference, buildgrid: servers.BuildGrid) -> None:
    with TcpProxy(buildgrid.address) as proxy:
        stranger.remote(f"grpc://{proxy.address}")
        sent = proxy.sent
    check_all_hits(stranger, reference)
    needed = reference.bytes_needed()
    assert needed <= sent < 1.1 * needed + 2_000 * len(reference.actions.all)
    print(f"downloaded {sent} bytes, of {reference.bytes_in_all()} and the results themselves")


def test_ci_writes_with_its_password_and_a_reader_does_not(
    stranger: Stranger, reference: Reference, proxy: HttpProxy, nginx: servers.Nginx
) -> None:
    """One result is missing: everybody makes it, the writer alone sends it."""
    (missing,) = (s.action for s in reference.actions.all if s.mnemonic == "Wheel")
    place = nginx.data / "ac" / missing
    kept = place.read_bytes()
    place.unlink()
    try:
        stranger.remote(proxy.url)
        assert stranger.spawns().executed == {"Wheel": 1}
        assert not place.exists()
        assert {method for method, _ in proxy.requests} == {"GET"}

        # A reader who tries to write is refused, and has the wheel all the same.
        got = stranger.remote(proxy.url, "--remote_upload_local_results")
        assert "401" in got.stdout
        assert clone.sha256(stranger.wheel()) == reference.sha256
        assert not place.exists()

        proxy.forget()
        credentials = servers.basic(*nginx.WRITER)
        stranger.remote(proxy.url, "--config=ci", f"--remote_header=Authorization={credentials}")
        assert ("PUT", f"/ac/{missing}") in proxy.requests
        stranger.remote(proxy.url)
        check_all_hits(stranger, reference)
    finally:
        place.write_bytes(kept)


def test_an_idle_build_asks_the_server_nothing(
    stranger: Stranger, reference: Reference, proxy: HttpProxy
) -> None:
    trusting = "--experimental_remote_cache_ttl=3h"  # Bazel's default
    stranger.remote(proxy.url, trusting)
    proxy.forget()
    proxy.plan = lambda method, path: Fault.BROKEN
    stranger.again(proxy.url, trusting)
    # Other tests trust nothing of this one.
    stranger.bazel("clean")
    assert not proxy.requests
    assert not stranger.spawns().all
