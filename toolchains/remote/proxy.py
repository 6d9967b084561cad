# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Proxies in front of a server, for tests: they count bytes and fail as networks and broken servers
do.

`HttpProxy` knows requests: each may get a `Fault`. `TcpProxy` knows connections alone, which is
enough for gRPC: it counts and cuts.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import http.client
import http.server
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Self

_HTML = b"<html><body><h1>Welcome! Please log in.</h1></body></html>"


class Fault(enum.Enum):
    """The fate of one request. Statuses are the server's refusals."""

    CORRUPTED = "one bit of the body differs"
    SHORTENED = "the last half of the body is missing, and Content-Length says so"
    CUT = "the connection ends in the middle of the body"
    DROPPED = "the connection ends without an answer"
    SLOW = "the answer comes late"
    HTML = "a page of some portal, with status 200"
    FORBIDDEN = 403
    MISSING = 404
    TOO_LARGE = 413
    UNAUTHORIZED = 401
    BROKEN = 500
    FULL = 507


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer to a request in place of the server's."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)


# Gets the method and the path of a request: /cas/HASH. It is asked before the server is.
Plan = Callable[[str, str], Fault | Answer | None]

# Headers of a request that the server gets, and of its answer that the client gets.
_ASKED = (
    *("Accept", "Authorization", "Content-Length", "Content-Type"),
    # MOVE, which nginx does within the host that was asked for.
    *("Destination", "Host", "Overwrite"),
)
_ANSWERED = ("Content-Type", "Location", "WWW-Authenticate")


def no_fault(_method: str, _path: str) -> None:
    return None


class HttpProxy:
    """An HTTP server's double at `url`.

    `plan` chooses the faults and may be replaced at any time. `injected` counts those that took
    effect; `sent` counts bytes of bodies by the path's first folder (ac, cas), as the client
    sees them; `requests` lists methods and paths. A slow answer comes `slow_seconds` late.
    """

    def __init__(self, upstream: str, plan: Plan = no_fault) -> None:
        self.upstream = upstream
        self.plan = plan
        self.slow_seconds = 0.2
        self.injected: collections.Counter[Fault] = collections.Counter()
        self.sent: collections.Counter[str] = collections.Counter()
        self.requests: list[tuple[str, str]] = []
        self._lock = threading.Lock()
        self._listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._listener.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._listener.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._listener.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown()
        self._listener.server_close()

    def forget(self) -> None:
        """Counts anew, without faults."""
        with self._lock:
            self.plan = no_fault
            for counter in (self.injected, self.sent, self.requests):
                counter.clear()

    def _forward(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.upstream.removeprefix("http://"), timeout=60)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            kept = {k: v for k, v in answer.getheaders() if k in _ANSWERED}
            return answer.status, kept, answer.read()
        except OSError as e:
            return 502, {}, f"the server is not there: {e}".encode()
        finally:
            connection.close()

    def _handler(proxy) -> type[http.server.BaseHTTPRequestHandler]:
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # A body does not wait until the client has acknowledged the headers, 40 ms later.
            disable_nagle_algorithm = True

            def _answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length) if length else None
                proxy._serve(self, body)

            do_GET = do_HEAD = do_PUT = do_MKCOL = do_MOVE = do_DELETE = _answer

            def handle(self) -> None:
                # A client that is killed is no error of the proxy's.
                with contextlib.suppress(ConnectionError):
                    super().handle()

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def _serve(self, client: http.server.BaseHTTPRequestHandler, body: bytes | None) -> None:
        method, path = client.command, client.path
        kind = path.split("/")[1] if path.count("/") > 1 else path
        fault = self.plan(method, path)
        with self._lock:
            self.requests.append((method, path))
        if isinstance(fault, Answer):
            return self._send(client, kind, fault.status, fault.headers, fault.body)
        if fault is Fault.DROPPED:
            self._count(fault)
            return self._end(client)
        if fault and isinstance(fault.value, int):
            self._count(fault)
            return self._send(client, kind, fault.value, {}, b"refused, for a test")
        if fault is Fault.HTML:
            self._count(fault)
            return self._send(client, kind, 200, {"Content-Type": "text/html"}, _HTML)
        headers = {k: client.headers[k] for k in _ASKED if client.headers[k]}
        status, kept, data = self._forward(method, path, body, headers)
        if fault is Fault.SLOW:
            self._count(fault)
            time.sleep(self.slow_seconds)
        elif fault and status == 200 and data:
            self._count(fault)
            half = len(data) // 2
            if fault is Fault.CORRUPTED:
                data = data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :]
            elif fault is Fault.SHORTENED:
                data = data[:half]
            else:
                return self._send(client, kind, status, kept, data[:half], len(data))
        return self._send(client, kind, status, kept, data)

    def _count(self, fault: Fault) -> None:
        with self._lock:
            self.injected[fault] += 1

    def _end(self, client: http.server.BaseHTTPRequestHandler) -> None:
        client.close_connection = True
        with contextlib.suppress(OSError):
            client.connection.shutdown(socket.SHUT_RDWR)

    def _send(
        self,
        client: http.server.BaseHTTPRequestHandler,
        kind: str,
        status: int,
        headers: Mapping[str, str],
        data: bytes,
        length: int | None = None,
    ) -> None:
        """Answers; a `length` beyond that of the data ends the connection behind it."""
        data = b"" if client.command == "HEAD" else data
        with self._lock:
            self.sent[kind] += len(data)
        with contextlib.suppress(OSError):
            client.send_response(status)
            for header in headers.items():
                client.send_header(*header)
            client.send_header("Content-Length", str(len(data) if length is None else length))
            client.end_headers()
            client.wfile.write(data)
            client.wfile.flush()
        if length is not None:
            self._end(client)


class TcpProxy:
    """A server's double at `address` for any protocol.

    `sent` is bytes to the client, `received` bytes from it. `cut()` ends all connections; the first
    ones end when the client got as many bytes through them as `cut_after` lists. `cuts` counts
    both.
    """

    def __init__(self, upstream: str) -> None:
        host, _, port = upstream.partition(":")
        self._upstream = (host, int(port))
        self.sent = self.received = self.cuts = 0
        self.cut_after: list[int] = []
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Ends all connections."""
        connections, self._open = self._open, []
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self.cuts += len(connections) // 2

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener was closed
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(self._upstream)
                except OSError:
                    client.close()
                    self.cuts += 1
                    continue
                self._open += [client, server]
                most = self.cut_after.pop(0) if self.cut_after else None
                for pump in ((server, client, True, most), (client, server, False, None)):
                    threading.Thread(target=self._pump, args=pump, daemon=True).start()

    def _pump(
        self, source: socket.socket, target: socket.socket, to_client: bool, most: int | None
    ) -> None:
        with contextlib.suppress(OSError):
            through = 0
            while block := source.recv(1 << 16):
                with self._lock:
                    if to_client:
                        self.sent += len(block)
                    else:
                        self.received += len(block)
                through += len(block)
                if most is not None and through >= most:
                    target.sendall(block[: len(block) - (through - most)])
                    self.cuts += 1
                    break
                target.sendall(block)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
