# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Servers that are no cache, and URLs that are none: a clear error, or a build without a cache."""

from __future__ import annotations

import time

import pytest

from tests.e2e.remote_cache.conftest import Reference, Stranger
from toolchains.remote import servers
from toolchains.remote.proxy import Fault, HttpProxy

# Results of two programs in Python: they take no time without a cache.
TARGET = "@ck_fmha//:recipe.fwd_qr"
SECRET = "a-secret-of-tests"  # noqa: S105


@pytest.mark.parametrize("url", ["ftp://cache.example", "cache.example:8980"])
def test_a_url_that_is_no_cache(stranger: Stranger, url: str) -> None:
    got = stranger.again(url, expect=None)
    assert got.returncode == 1
    assert f"--remote_cache={url}: not the URL of a cache; it may start with http://" in got.stdout


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_a_server_that_is_not_there(stranger: Stranger, reference: Reference, scheme: str) -> None:
    start = time.monotonic()
    got = stranger.remote(f"{scheme}://ci:{SECRET}@127.0.0.1:9", target=TARGET)
    assert time.monotonic() - start < 60
    assert stranger.spawns().executed["CodeObjectRecipe"] == 1
    assert "WARNING: Remote Cache: " in got.stdout
    assert SECRET not in got.stdout


@pytest.mark.parametrize("fault", [Fault.HTML, Fault.UNAUTHORIZED, Fault.FORBIDDEN, Fault.BROKEN])
def test_a_server_that_is_no_cache_or_refuses(
    stranger: Stranger, proxy: HttpProxy, fault: Fault
) -> None:
    """A portal that answers all with a page; credentials that are missing or wrong."""
    proxy.plan = lambda method, path: fault
    credentials = servers.basic("ci", SECRET)
    got = stranger.remote(
        proxy.url,
        "--config=ci",
        f"--remote_header=Authorization={credentials}",
        target=TARGET,
    )
    assert stranger.spawns().executed["CodeObjectRecipe"] == 1
    assert proxy.injected[fault]
    if fault is not Fault.HTML:
        assert f"WARNING: Remote Cache: {fault.value}" in got.stdout, got.stdout
    assert SECRET not in got.stdout and credentials.split()[1] not in got.stdout


def test_a_server_that_never_answers(stranger: Stranger, nginx: servers.Nginx) -> None:
    with HttpProxy(nginx.url) as proxy:
        proxy.slow_seconds = 30
        proxy.plan = lambda method, path: Fault.SLOW
        stranger.remote(proxy.url, "--remote_timeout=1s", "--remote_retries=1", target=TARGET)
    assert stranger.spawns().executed["CodeObjectRecipe"] == 1
