# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The proxies change requests and connections as they say, and count that."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from toolchains.locks.tests.servers import serve
from toolchains.remote.proxy import Fault, HttpProxy, TcpProxy

BODY = b"0123456789"
PATH = "/cas/" + "a" * 64


@pytest.fixture
def proxy() -> Iterator[HttpProxy]:
    with serve({PATH: BODY}) as server, HttpProxy(server.url) as made:
        yield made


def get(proxy: HttpProxy, fault: Fault | None = None, path: str = PATH) -> bytes:
    proxy.plan = lambda method, asked: fault
    with urllib.request.urlopen(proxy.url + path, timeout=10) as answer:  # noqa: S310
        body: bytes = answer.read()
        return body


def test_without_a_fault_bytes_pass_and_are_counted(proxy: HttpProxy) -> None:
    assert get(proxy) == BODY
    assert proxy.sent == {"cas": len(BODY)}
    assert proxy.requests == [("GET", PATH)]
    assert not proxy.injected
    proxy.forget()
    assert not proxy.sent and not proxy.requests


def test_what_is_done_to_bodies(proxy: HttpProxy) -> None:
    assert get(proxy, Fault.CORRUPTED) == b"0123445678"[:5] + b"4" + BODY[6:]
    assert get(proxy, Fault.SHORTENED) == BODY[:5]
    assert get(proxy, Fault.HTML).startswith(b"<html>")
    with pytest.raises(http.client.IncompleteRead):
        get(proxy, Fault.CUT)
    assert set(proxy.injected.values()) == {1} and len(proxy.injected) == 4


def test_a_connection_without_an_answer(proxy: HttpProxy) -> None:
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError, urllib.error.URLError)):
        get(proxy, Fault.DROPPED)
    assert proxy.injected == {Fault.DROPPED: 1}


@pytest.mark.parametrize("fault", [f for f in Fault if isinstance(f.value, int)])
def test_refusals(proxy: HttpProxy, fault: Fault) -> None:
    with pytest.raises(urllib.error.HTTPError) as e:
        get(proxy, fault)
    assert e.value.code == fault.value
    assert proxy.injected == {fault: 1}


def test_a_fault_that_had_no_effect_does_not_count(proxy: HttpProxy) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(proxy, Fault.CORRUPTED, "/cas/" + "b" * 64)
    assert not proxy.injected


def test_slow(proxy: HttpProxy) -> None:
    start = time.monotonic()
    assert get(proxy, Fault.SLOW) == BODY
    assert time.monotonic() - start >= 0.2


def test_a_server_that_is_not_there() -> None:
    with HttpProxy("http://127.0.0.1:9") as proxy, pytest.raises(urllib.error.HTTPError) as e:
        get(proxy)
    assert e.value.code == 502


def test_connections_are_forwarded_counted_and_cut() -> None:
    with serve({PATH: BODY}) as server, TcpProxy(server.host) as proxy:
        url = f"http://{proxy.address}{PATH}"
        assert urllib.request.urlopen(url, timeout=10).read() == BODY
        assert proxy.sent > len(BODY)
        idle = http.client.HTTPConnection(proxy.address, timeout=10)
        idle.request("GET", PATH)
        assert idle.getresponse().read() == BODY
        proxy.cut()
        assert idle.sock is None or idle.sock.recv(1) == b""
        assert proxy.cuts
