# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""URLs that Bazel would quietly not use are refused, wherever they stand, and executors that do not
answer."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolchains.bazel import remote
from toolchains.locks.errors import LocksError

_TLS = Path(__file__).parent / "tls"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://127.0.0.1:8080/path",
        "https://cache.example",
        "grpc://cache.example:8980",
        "unix:/run/cache.sock",
    ],
)
def test_urls_of_caches(url: str) -> None:
    remote.check(["build", f"--remote_cache={url}", "//:all"], "", debian=True)
    remote.check(["build", "--remote_cache", url, "//:all"], "", debian=True)
    remote.check([], f"build --remote_cache={url}", debian=True)


@pytest.mark.parametrize(
    "url", ["ftp://cache.example", "cache.example:8980", "htp://x", "http:/x", "/var/cache"]
)
def test_anything_else(url: str) -> None:
    message = r"--remote_cache=.*http://, https://, grpc://, grpcs://, unix:/"
    for arguments, rc in (
        (["build", f"--remote_cache={url}"], ""),
        (["build", "--remote_cache", url], ""),
        ([], f"# mine\nbuild:x --jobs=2 --remote_cache={url}  # there\n"),
        ([], f"common --remote_cache '{url}'\n"),
    ):
        with pytest.raises(LocksError, match=message) as e:
            remote.check(arguments, rc, debian=False)
        assert url in str(e.value)


def test_credentials_are_not_shown() -> None:
    with pytest.raises(LocksError) as e:
        remote.check(["--remote_cache=ftp://ci:secret@cache.example"], "", debian=False)
    assert "secret" not in str(e.value) and "cache.example" in str(e.value)


def test_grpc_over_tls_needs_another_bazel() -> None:
    arguments = ["--remote_cache=grpcs://cache.example"]
    remote.check(arguments, "", debian=False)
    with pytest.raises(LocksError, match=r"without TLS.*bazelisk"):
        remote.check(arguments, "", debian=True)


def test_what_is_no_option_of_bazel() -> None:
    remote.check(["run", "//:x", "--", "--remote_cache=whatever"], "", debian=True)
    remote.check([], "# build --remote_cache=whatever\n", debian=True)
    remote.check([], "build --jobs=2  # not --remote_cache=whatever\n", debian=True)


@contextlib.contextmanager
def answering(server: socket.socket, answer: bytes) -> Iterator[None]:
    """A server that answers each connection so, and closes it."""

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                # A client that does not trust a certificate ends its connection.
                with contextlib.suppress(ssl.SSLError), server.accept()[0] as connection:
                    connection.recv(100)
                    connection.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield
    server.shutdown(socket.SHUT_RDWR)
    thread.join()


# Settings of none, and what may come behind them.
GRPC = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)) + b"..."


@pytest.fixture
def listening() -> Iterator[str]:
    """The address of a server that speaks gRPC."""
    with socket.create_server(("127.0.0.1", 0)) as server, answering(server, GRPC):
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def closed() -> str:
    """An address at which nothing answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("url", ["http://x", "https://x", "executor.example:8980", "/run/x"])
def test_what_is_no_executor(url: str) -> None:
    message = r"--remote_executor=.*grpc://, grpcs://, unix:/$"
    for arguments, rc in (
        (["build", f"--remote_executor={url}"], ""),
        (["build"], f"build:rbe --remote_executor={url}\n"),
    ):
        with pytest.raises(LocksError, match=message):
            remote.check(arguments, rc, debian=False)


def test_an_executor_that_answers(listening: str, tmp_path: Path) -> None:
    remote.check(["test", f"--remote_executor=grpc://{listening}"], "", debian=True)
    # The path of a test's folder may be longer than that of a socket.
    folder = os.open(tmp_path, os.O_RDONLY)
    path = f"/proc/self/fd/{folder}/s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        with answering(server, GRPC):
            remote.check(["build", f"--remote_executor=unix:{path}"], "", debian=True)
    os.close(folder)


def test_an_executor_that_does_not_answer(closed: str, tmp_path: Path) -> None:
    for url in (f"grpc://{closed}", f"unix:{tmp_path}/none"):
        message = f"--remote_executor={url}: no answer within 5 s .*start it"
        for command in ("build", "coverage", "run", "test"):
            with pytest.raises(LocksError, match=message):
                remote.check([command, f"--remote_executor={url}"], "", debian=True)
        # Nothing is executed by these.
        remote.check(["query", f"--remote_executor={url}", "//:all"], "", debian=True)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_a_server_of_another_kind(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, answering(server, answer):
        url = f"grpc://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(LocksError, match=f"{url}: it does not speak gRPC"):
            remote.check(["build", f"--remote_executor={url}"], "", debian=True)


def test_a_server_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"grpc://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(LocksError, match=r"no answer within 0 s \(timed out\)"):
            remote.check(["build", f"--remote_executor={url}"], "", debian=True)


@pytest.mark.parametrize(
    ("trusted", "said"), [(True, "certificate has expired"), (False, "self[- ]signed certificate")]
)
def test_certificates(monkeypatch: pytest.MonkeyPatch, trusted: bool, said: str) -> None:
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(_TLS / "cert.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_TLS / "cert.pem", _TLS / "key.pem")
    with (
        socket.create_server(("127.0.0.1", 0)) as plain,
        context.wrap_socket(plain, server_side=True) as server,
        answering(server, GRPC),
    ):
        url = f"grpcs://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(LocksError, match=f"{url}: no answer .*{said}"):
            remote.check(["build", f"--remote_executor={url}"], "", debian=False)
        # Bazel is given certificates: which it trusts then is not known here.
        remote.check(["build", f"--remote_executor={url}", "--tls_certificate=x"], "", debian=False)


def test_an_executor_of_a_configuration(closed: str, listening: str) -> None:
    rc = f"build:rbe --remote_executor=grpc://{closed}"
    remote.check(["build", "//:all"], rc, debian=True)
    with pytest.raises(LocksError, match="no answer"):
        remote.check(["build", "--config=rbe", "//:all"], rc, debian=True)
    # The last one counts, and an empty one is none.
    for url in (f"grpc://{listening}", ""):
        remote.check(
            ["build", "--config=rbe", f"--remote_executor={url}", "//:all"], rc, debian=True
        )


def test_a_port_that_is_none() -> None:
    with pytest.raises(LocksError, match=r"grpc://x:port: .*want grpc://HOST:PORT"):
        remote.check(["build", "--remote_executor=grpc://x:port"], "", debian=True)
