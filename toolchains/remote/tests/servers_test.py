# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Rights to read and write on nginx as it is configured; the contents of a filled server."""

from __future__ import annotations

import hashlib
import http.client
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolchains.remote import fill, servers

HASH = hashlib.sha256(b"contents").hexdigest()


@pytest.fixture(scope="module")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Nginx]:
    with servers.Nginx(tmp_path_factory.mktemp("nginx")) as server:
        yield server


def ask(
    server: servers.Nginx, method: str, path: str, body: bytes = b"", password: str | None = None
) -> tuple[int, bytes]:
    headers = {}
    if password is not None:
        headers["Authorization"] = servers.basic(server.WRITER[0], password)
    connection = http.client.HTTPConnection(server.address, timeout=10)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    got = answer.status, answer.read()
    connection.close()
    return got


def test_only_the_writer_writes_and_everybody_reads(nginx: servers.Nginx) -> None:
    path = f"/cas/{HASH}"
    assert ask(nginx, "PUT", path, b"contents")[0] == 401
    assert ask(nginx, "PUT", path, b"contents", "wrong")[0] == 401
    assert ask(nginx, "GET", path)[0] == 404
    assert ask(nginx, "PUT", path, b"contents", nginx.WRITER[1])[0] == 201
    assert ask(nginx, "GET", path) == (200, b"contents")


def test_nothing_is_deleted_and_no_other_path_is_there(nginx: servers.Nginx) -> None:
    path = f"/ac/{HASH}"
    assert ask(nginx, "PUT", path, b"x", nginx.WRITER[1])[0] == 201
    assert ask(nginx, "DELETE", path, password=nginx.WRITER[1])[0] == 405
    assert ask(nginx, "GET", path) == (200, b"x")
    for other in ("/", "/cas/", f"/cas/{HASH}x", f"/cas/../writers{HASH[:50]}", "/writers"):
        assert ask(nginx, "PUT", other, b"x", nginx.WRITER[1])[0] in (400, 404), other
        assert ask(nginx, "GET", other)[0] in (400, 404), other


def test_large_files(nginx: servers.Nginx) -> None:
    data = bytes(3_000_000)  # beyond nginx's default limit
    path = f"/cas/{hashlib.sha256(data).hexdigest()}"
    assert ask(nginx, "PUT", path, data, nginx.WRITER[1])[0] == 201
    assert ask(nginx, "GET", path) == (200, data)


def test_a_killed_server_comes_back_with_its_data(tmp_path: Path) -> None:
    with servers.Nginx(tmp_path / "nginx") as server:
        assert ask(server, "PUT", f"/cas/{HASH}", b"contents", server.WRITER[1])[0] == 201
        server.kill()
        with pytest.raises(OSError):
            ask(server, "GET", f"/cas/{HASH}")
        server.start()
        assert ask(server, "GET", f"/cas/{HASH}") == (200, b"contents")


# Starts a listener that lives on for .5 s when this process has ended.
_WRAPPER = """
import os, socket, sys, time
wrapper = os.getpid()
if os.fork():
    os.wait()
open(f"listener.{os.getpid()}", "w").close()
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    while os.getppid() == wrapper:
        time.sleep(0.01)
    time.sleep(0.5)
"""


class Wrapped(servers.Server):
    scheme = "tcp"

    def command(self) -> list[str]:
        return [sys.executable, "-c", _WRAPPER, str(self.port)]


def test_a_killed_server_is_gone_before_it_is_started_again(tmp_path: Path) -> None:
    """The test fails where `kill` waits for the wrapper alone: the old listener is found then."""
    with Wrapped(tmp_path) as server:
        server.kill()
        server.start()
        assert len(list(tmp_path.glob("listener.*"))) == 2


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    server = servers.Nginx(tmp_path / "nginx")
    server.settings = server.settings.replace("worker_connections", "worker_conections")
    with pytest.raises(RuntimeError, match="worker_conections"):
        server.start()


def disk_cache(folder: Path) -> tuple[Path, str]:
    """A disk cache with the result of one action: one file. Returns the action, too."""
    action = hashlib.sha256(b"action").hexdigest()
    # Fields of ActionResult, OutputFile and Digest: output_files, path, digest; hash, size_bytes.
    digest = b"\x0a\x40" + HASH.encode() + b"\x10\x08"
    file = b"\x0a\x03out" + b"\x12" + bytes([len(digest)]) + digest
    result = b"\x12" + bytes([len(file)]) + file
    for kind, name, data in (
        ("ac", action, result),
        ("cas", action, b"action"),
        ("cas", HASH, b"contents"),
        ("cas", "0" * 64, b"of another action"),
    ):
        place = folder / kind / name[:2] / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return folder, action


def test_filling(tmp_path: Path, nginx: servers.Nginx) -> None:
    folder, action = disk_cache(tmp_path / "disk")
    entries = fill.Entries(folder, [action])
    assert set(entries.ac) == {action} and set(entries.cas) == {HASH}
    fill.into_nginx(nginx, entries)
    assert ask(nginx, "GET", f"/ac/{action}")[0] == 200
    with pytest.raises(KeyError, match="no result of action 1111"):
        fill.Entries(folder, ["1" * 64])


def test_a_server_that_begins_with_a_disk_cache(tmp_path: Path) -> None:
    folder, action = disk_cache(tmp_path / "disk")
    kept = folder / "ac" / action[:2] / action
    server = servers.Nginx(tmp_path / "nginx")
    fill.link_disk_cache(server, folder)
    with server:
        assert ask(server, "GET", f"/cas/{HASH}") == (200, b"contents")
        assert ask(server, "GET", f"/ac/{action}") == (200, kept.read_bytes())
        before = kept.read_bytes()
        assert ask(server, "PUT", f"/ac/{action}", b"other", server.WRITER[1])[0] in (201, 204)
        assert ask(server, "GET", f"/ac/{action}") == (200, b"other")
    assert kept.read_bytes() == before, "the disk cache is the user's"
