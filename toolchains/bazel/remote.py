# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Looks at the URLs of the cache server and of the executor before Bazel does.

With a URL of a cache that it does not understand Bazel builds without a cache, and says so in words
of another subject: TLS, for a URL without a scheme. For an executor that drops packets it waits
minutes.
"""

from __future__ import annotations

import re
import socket
import urllib.parse
from collections.abc import Iterator, Sequence

from toolchains.locks.errors import LocksError

_CACHE, _EXECUTOR = "--remote_cache", "--remote_executor"
_GRPC = ("grpc://", "grpcs://", "unix:/")
_STARTS = {_CACHE: ("http://", "https://", *_GRPC), _EXECUTOR: _GRPC}
_NOUNS = {_CACHE: "a cache", _EXECUTOR: "an executor"}
_PORTS = {"grpc": 80, "grpcs": 443}
_PATIENCE = 5.0
# gRPC is HTTP/2. Its client begins with this and settings of its own, a frame of nine bytes at
# least, and so does the server: the type of a frame is its fourth byte.
_SETTINGS = 4
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0))
# Those that execute actions.
_COMMANDS = frozenset({"build", "coverage", "run", "test"})


def _in_arguments(arguments: Sequence[str], flag: str) -> Iterator[str]:
    options = list(arguments)[: arguments.index("--") if "--" in arguments else None]
    for at, option in enumerate(options):
        if option == flag:
            yield "".join(options[at + 1 : at + 2])
        elif option.startswith(f"{flag}="):
            yield option.partition("=")[2]


def _in_rc(text: str, flag: str, configs: Sequence[str] | None = None) -> Iterator[str]:
    """The values in a .bazelrc, for any command; of all configurations, or of these and none."""
    for line in text.splitlines():
        words = re.split(r"\s+#", line)[0].split()
        if not words or words[0].startswith("#"):
            continue
        config = words[0].partition(":")[2]
        if configs is None or not config or config in configs:
            yield from _in_arguments([word.strip("'\"") for word in words], flag)


def check(arguments: Sequence[str], rc: str, debian: bool) -> None:
    """Raises LocksError for a URL that Bazel would not use, or an executor that does not answer.

    `arguments` are Bazel's, `rc` is the text of rc files; `debian`: the locked Bazel, whose
    Java cannot do TLS the way that gRPC wants it. Credentials in the URL are not shown.
    """
    for flag in (_CACHE, _EXECUTOR):
        for url in [*_in_rc(rc, flag), *_in_arguments(arguments, flag)]:
            wrong = ""
            # An empty one is none.
            if url and not url.startswith(_STARTS[flag]):
                starts = ", ".join(_STARTS[flag])
                wrong = f"not the URL of {_NOUNS[flag]}; it may start with {starts}"
            elif debian and url.startswith("grpcs:"):
                another = "https://, " if flag == _CACHE else ""
                wrong = (
                    "the Bazel of Debian packages speaks gRPC without TLS only; use "
                    f"{another}a grpc:// proxy on this machine, or put bazelisk on PATH"
                )
            if wrong:
                raise _error(flag, url, wrong)
    url = executor(arguments, rc)
    # With certificates of its own Bazel trusts other servers.
    if url and not any(word.startswith("--tls_") for word in [*arguments, *rc.split()]):
        _reach(url)


def executor(arguments: Sequence[str], rc: str) -> str:
    """Returns the URL of the executor of a command; "" where its actions run here, or it has none.

    `arguments` are Bazel's, `rc` is the text of rc files.
    """
    if _COMMANDS.isdisjoint(arguments):
        return ""
    configs = list(_in_arguments(arguments, "--config"))
    urls = [*_in_rc(rc, _EXECUTOR, configs), *_in_arguments(arguments, _EXECUTOR)]
    # Of several, Bazel takes the last.
    return urls[-1] if urls else ""


def _connection(parts: urllib.parse.SplitResult) -> socket.socket:
    """Raises OSError where nothing listens, or TLS fails; ValueError for a port that is none."""
    if parts.scheme == "unix":
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_PATIENCE)
        connection.connect(parts.path)
        return connection
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    connection = socket.create_connection((host, port), _PATIENCE)
    if parts.scheme != "grpcs":
        return connection
    import ssl  # slow to import

    context = ssl.create_default_context()
    context.set_alpn_protocols(["h2"])
    return context.wrap_socket(connection, server_hostname=host)


def _reach(url: str) -> None:
    """Raises LocksError where no gRPC server answers at the address of an executor."""
    try:
        with _connection(urllib.parse.urlsplit(url)) as connection:
            connection.sendall(_HELLO)
            answer = connection.makefile("rb").read(9)
    # First: a certificate that is not trusted is a ValueError, too.
    except OSError as error:
        raise _error(
            _EXECUTOR,
            url,
            f"no answer within {_PATIENCE:.0f} s ({error}); start it, correct the address, or "
            "build here without --config=rbe",
        ) from error
    except ValueError as error:
        raise _error(_EXECUTOR, url, f"{error}; want grpc://HOST:PORT") from error
    if len(answer) < 9 or answer[3] != _SETTINGS:
        raise _error(
            _EXECUTOR, url, f"it does not speak gRPC ({answer!r}); want a remote execution server"
        )


def _error(flag: str, url: str, wrong: str) -> LocksError:
    from toolchains.locks import web  # slow to import

    return LocksError(f"{flag}={web.shown(url)}: {wrong}")
