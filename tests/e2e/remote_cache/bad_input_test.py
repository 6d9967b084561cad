# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Servers that are no cache or no executor, and URLs that are none: a clear error, or a build
without a cache."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

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


def refused(stranger: Stranger, executor: str) -> str:
    """Returns what a build says that an executor cannot execute, within 30 s."""
    start = time.monotonic()
    options = ("--config=rbe", f"--remote_executor={executor}", "--noremote_accept_cached")
    got = stranger.bazel("build", *options, TARGET, expect=None)
    assert time.monotonic() - start < 30
    assert got.returncode == 34
    said: str = got.stdout
    assert 'bazelw: the executor failed, as Bazel says above; docs/scale.md, "When' in said
    return said


def test_a_cache_is_no_executor(stranger: Stranger, buildgrid: servers.BuildGrid) -> None:
    assert "Remote execution is not supported by the remote server" in refused(
        stranger, buildgrid.url
    )


@pytest.mark.parametrize(
    ("reason", "said"),
    [("api", "not supported by the server, 3.0 to 3.0"), ("pool", "no worker is in the pool")],
)
def test_executors_that_cannot_be_used(
    stranger: Stranger, tmp_path: Path, reason: str, said: str
) -> None:
    with servers.UnusableExecutor(tmp_path, reason) as executor:
        assert said in refused(stranger, executor.url)


@pytest.fixture
def impatient(stranger: Stranger) -> Iterator[Stranger]:
    """Its bazelw waits for an executor for less than its half hour."""
    file = stranger.root / "toolchains/bazel/waiting.py"
    text = file.read_text()
    file.write_text(servers.replaced(text, "_LIMIT = 1800.0", "_LIMIT = 25.0"))
    yield stranger
    file.write_text(text)


@pytest.mark.parametrize("ci", ["", "true"])
def test_an_executor_that_keeps_actions_waiting(
    impatient: Stranger, tmp_path: Path, ci: str
) -> None:
    """For ever: bazelw says so, and ends the build; in CI as well."""
    with servers.UnusableExecutor(tmp_path, "queue") as executor:
        options = ("--config=rbe", f"--remote_executor={executor.url}", "--noremote_accept_cached")
        started = time.monotonic()
        got = impatient.bazel("build", *options, TARGET, expect=8, CI=ci)
    assert time.monotonic() - started < 90
    assert f"bazelw: no action has ended for 20 s: {executor.url} has no free worker" in got.stdout
    assert "bazelw: the build is ended" in got.stdout
