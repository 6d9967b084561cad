# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Servers that refuse, are broken, or are no WebDAV servers; and secrets that must never be
printed."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from python.release import publish, targets
from python.release.documents import Release
from python.release.errors import ReleaseError
from python.release.folder import Folder
from python.release.tests import builds, dav
from python.release.webdav import WebDav
from toolchains.remote.proxy import Answer

SECRET = "s3cr%40t"  # noqa: S105


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NETRC"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[dav.Server]:
    with dav.serve(tmp_path / "served") as server:
        yield server


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return builds.release(tmp_path_factory.mktemp("build"))


def refused(release: Release, url: str) -> str:
    with pytest.raises(ReleaseError) as error:
        publish.publish(release, WebDav(url, lease=0.2, pause=0.01), lambda text: None)
    assert "s3cr" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("method", "status", "words"),
    [
        ("GET", 401, ("HTTP 401", "USER:PASSWORD@HOST", "netrc")),
        ("PUT", 403, ("HTTP 403", "may write")),
        ("PUT", 405, ("HTTP 405", "MKCOL")),
        ("PUT", 413, ("HTTP 413", "client_max_body_size")),
        ("PUT", 507, ("HTTP 507", "free some space")),
        ("MKCOL", 403, ("HTTP 403", "may write")),
        ("MOVE", 405, ("HTTP 405", "MOVE")),
        ("PUT", 418, ("HTTP 418",)),
    ],
)
def test_a_refusal_says_what_to_do(
    server: dav.Server, release: Release, method: str, status: int, words: tuple[str, ...]
) -> None:
    server.plan = lambda m, path: Answer(status) if m == method else None
    message = refused(release, server.write_url)
    for word in (method, server.host, *words):
        assert word in message
    assert not (server.root / "attn/index.json").exists()
    assert not (server.root / "attn/index.lock").exists()


def test_a_server_in_trouble_is_asked_again(server: dav.Server, release: Release) -> None:
    answers = iter([503, 502, 500])

    def fault(method: str, path: str) -> Answer | None:
        status = next(answers, None) if method == "PUT" else None
        return Answer(status) if status else None

    server.plan = fault
    publish.publish(release, WebDav(server.write_url, pause=0.01), lambda text: None)
    assert (server.root / "attn/index.json").exists()


@pytest.mark.parametrize("status", [None, 404, 409])
def test_missing_folders_are_made(tmp_path: Path, release: Release, status: int | None) -> None:
    """By any status that a server has for a folder that is not there; nginx's is 500."""

    def fault(method: str, path: str) -> Answer | None:
        missing = method == "PUT" and not (server.root / path.strip("/")).parent.is_dir()
        return Answer(status) if missing and status else None

    with dav.serve(tmp_path / "served", remove="create_full_put_path on;") as server:
        server.plan = fault
        publish.publish(release, WebDav(server.write_url, pause=0.01), lambda text: None)
        assert (server.root / "attn/index.json").exists()


def test_the_server_of_the_documentation(server: dav.Server) -> None:
    """The nginx configuration of docs/releasing.md is the one that these tests run."""
    text = (Path(__file__).parents[3] / "docs/releasing.md").read_text(encoding="utf-8")
    location = re.search(r"\n    location /attn/ \{\n(.*?)\n    \}", text, re.DOTALL)
    assert location
    settings = [line.strip() for line in server.nginx.settings.splitlines()]
    for line in location[1].splitlines():
        assert line.strip() in settings, line


def test_one_that_stays_in_trouble(server: dav.Server, release: Release) -> None:
    server.plan = lambda method, path: Answer(503) if method == "PUT" else None
    assert "HTTP 503" in refused(release, server.write_url)


def test_a_page_in_the_place_of_all_files(server: dav.Server, release: Release) -> None:
    """A portal that answers everything with its page, and with 200."""
    server.plan = lambda method, path: Answer(200, b"<html>Sign in</html>")
    message = refused(release, server.write_url)
    assert "was written, and has the sha256" in message


def test_a_redirect_is_named_and_not_followed(server: dav.Server, release: Release) -> None:
    elsewhere = {"Location": f"http://user:{SECRET}@{server.host}/else"}
    server.plan = lambda method, path: Answer(302, headers=elsewhere) if method == "GET" else None
    message = refused(release, server.write_url)
    assert "redirects to http://***@" in message
    assert not [path for _, path in server.requests if "else" in path]


def test_credentials_are_sent_and_not_shown(server: dav.Server, release: Release) -> None:
    refused(release, server.read_url)
    target = WebDav(server.write_url)
    assert target.shown == f"http://{server.host}/attn/"
    shown: list[str] = []
    publish.publish(release, target, shown.append)
    assert shown
    assert not any("s3cr" in text for text in shown)
    refused(release, f"http://other:{SECRET}@{server.host}/attn")


def test_credentials_of_netrc(server: dav.Server, release: Release, tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login user password s3cr@t\n")
    (tmp_path / ".netrc").chmod(0o600)
    publish.publish(release, WebDav(server.read_url), lambda text: None)


def test_no_server_at_all(release: Release) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    message = refused(release, f"http://user:{SECRET}@127.0.0.1:{port}/attn")
    assert f"127.0.0.1:{port}" in message
    assert "run this again" in message


def test_a_proxy_that_is_not_there(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://user:{SECRET}@127.0.0.1:9")
    refused(release, "http://host.invalid/attn")


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("", ("--to is empty", "folder")),
        ("s3://bucket/attn", ("'s3'", "http", "folder")),
        (f"ftp://user:{SECRET}@host/attn", ("'ftp'", "https")),
        ("http://", ("want a host",)),
        ("https://host/attn?x=1", ("want a host and a path",)),
        (f"http://user:{SECRET}@host:port/attn", ("--to=http://***@host:port/attn",)),
        (f"http://user:p@{SECRET}@host/attn?x=1", ("--to=http://***@host/attn",)),
    ],
)
def test_a_target_that_is_none(to: str, words: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(ReleaseError) as error:
        targets.parse(to, tmp_path)
    for word in words:
        assert word in str(error.value)
    assert "s3cr" not in str(error.value)


def test_a_folder_is_one_of_the_users(tmp_path: Path) -> None:
    target = targets.parse("out/attn", tmp_path)
    assert isinstance(target, Folder)
    assert target.root == tmp_path / "out/attn"
    assert targets.parse("~/x", tmp_path / "other").shown == str(tmp_path / "x")


def test_a_lock_that_nobody_gives_back_ends_with_its_lease(
    server: dav.Server, release: Release
) -> None:
    (server.root / "attn/index.lock").mkdir()
    (server.root / "attn/index.lock/holder").write_text("killed long ago")
    publish.publish(release, WebDav(server.write_url, lease=0.3), lambda text: None)
    assert (server.root / "attn/index.json").exists()
    assert not (server.root / "attn/index.lock").exists()
