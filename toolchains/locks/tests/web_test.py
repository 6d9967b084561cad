# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Reading URLs: pauses, credentials, proxies."""

from __future__ import annotations

import base64
import time
import urllib.request

import pytest

from toolchains.locks import web
from toolchains.locks.tests.servers import serve

BODY = {"/a": b"one"}
HIDDEN = "pass word@1"
USER = f"someone:{HIDDEN.replace(' ', '%20').replace('@', '%40')}@"
BASIC = "Basic " + base64.b64encode(f"someone:{HIDDEN}".encode()).decode()


def read(url: str) -> bytes:
    return web.fetch(url, b"".join)


def test_a_busy_server_is_given_the_pause_that_it_asks_for() -> None:
    with serve(BODY) as server:
        server.statuses, server.headers = [429], {"Retry-After": "1"}
        start = time.monotonic()
        assert read(f"{server.url}/a") == b"one"
        assert time.monotonic() - start >= 1


def test_a_server_that_asks_for_a_long_pause_is_not_asked_again() -> None:
    with serve(BODY, 503) as server:
        server.headers = {"Retry-After": "11"}
        with pytest.raises(web.Unavailable, match=r"HTTP 503 .*try again in 11 seconds"):
            read(f"{server.url}/a")
        assert server.asked == ["/a"]


def test_credentials_of_a_url_are_sent_and_never_shown() -> None:
    with serve(BODY) as server:
        url = f"http://{USER}{server.host}/a"
        assert read(url) == b"one"
        assert server.credentials == [BASIC]
        server.statuses = [403]
        with pytest.raises(
            web.Refused, match="credentials stand in the URL, as USER:PASSWORD@HOST"
        ):
            read(url)
        assert web.shown(url) == f"http://***@{server.host}/a"
        assert web.shown(url.replace("http", "HTTP")) == f"HTTP://***@{server.host}/a"
    # Nor where the address is wrong, which Python's messages quote.
    for wrong in ("far.example:port", "[far.example", "far\N{ACCOUNT OF}.example"):
        with pytest.raises(web.Trouble) as e:
            read(f"http://{USER}{wrong}/a")
        assert "pass" not in str(e.value)


def test_another_server_gets_no_credentials() -> None:
    with serve(BODY) as other, serve(BODY, 302) as server:
        server.headers = {"Location": f"{other.url}/a"}
        assert read(f"http://{USER}{server.host}/a") == b"one"
        assert other.credentials == [None]


def test_only_a_user_is_hidden() -> None:
    for url in ("https://a.example/@scope/b", "file:///a@b/c"):
        assert web.shown(url) == url


def test_a_proxy_that_refuses_is_told_from_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve({}, 407) as proxy:
        for name in ("http_proxy", "https_proxy"):
            monkeypatch.setenv(name, f"http://{USER}{proxy.host}")
            monkeypatch.delenv(name.upper(), raising=False)
        monkeypatch.setenv("no_proxy", "")
        # It reads the environment once.
        monkeypatch.setattr(urllib.request, "_opener", None)
        for scheme in ("http", "https"):
            with pytest.raises(web.Refused, match=r"407.*proxy refuses.*http_proxy") as e:
                read(f"{scheme}://far.example/a")
            assert "pass" not in str(e.value)
    assert len(proxy.asked) == 2
