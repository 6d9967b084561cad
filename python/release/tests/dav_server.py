# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A small WebDAV server of a folder, with faults on request."""

from __future__ import annotations

import base64
import contextlib
import http.server
import os
import shutil
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path

# Of a request's method and path: an answer instead of the right one, as (status, type, body).
Fault = Callable[[str, str], tuple[int, str, bytes] | None]


class Server:
    """Serves `root`.

    requests: "METHOD PATH" of all that were made
    fault: is asked before each request
    credentials: USER:PASSWORD that are wanted, if any
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.requests: list[str] = []
        self.fault: Fault = lambda method, path: None
        self.credentials: str | None = None
        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.host = f"127.0.0.1:{self._http.server_address[1]}"
        self.url = f"http://{self.host}/attn"

    def sent(self, method: str) -> list[str]:
        """The paths of the requests of one method."""
        return [r.split(" ", 1)[1] for r in self.requests if r.startswith(method + " ")]

    def __enter__(self) -> Server:
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


@contextlib.contextmanager
def serve(root: Path) -> Iterator[Server]:
    root.mkdir(parents=True, exist_ok=True)
    with Server(root) as server:
        yield server


def _handler(server: Server) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            # A client that is killed is no error of the server's.
            with contextlib.suppress(ConnectionError):
                super().handle()

        def finish(self) -> None:
            with contextlib.suppress(ConnectionError):
                super().finish()

        def _file(self, url: str) -> Path:
            return server.root / urllib.parse.unquote(urllib.parse.urlsplit(url).path).strip("/")

        def _answer(self, status: int, kind: str = "text/plain", body: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _is_welcome(self) -> bool:
            if server.credentials is None:
                return True
            wanted = base64.b64encode(server.credentials.encode()).decode()
            return self.headers.get("Authorization") == f"Basic {wanted}"

        def _handle(self) -> None:
            server.requests.append(f"{self.command} {self.path}")
            self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            fault = server.fault(self.command, self.path)
            if fault is not None:
                return self._answer(*fault)
            if not self._is_welcome():
                return self._answer(401)
            return getattr(self, f"_{self.command.lower()}")(self._file(self.path))

        do_GET = do_PUT = do_MKCOL = do_MOVE = do_DELETE = _handle

        def _get(self, file: Path) -> None:
            if not file.is_file():
                return self._answer(404)
            # pip reads a page only if it is called one.
            kind = "text/html" if file.suffix == ".html" else "application/octet-stream"
            return self._answer(200, kind, file.read_bytes())

        def _put(self, file: Path) -> None:
            if not file.parent.is_dir():
                return self._answer(409)
            scratch = file.with_name(f".{threading.get_ident()}")
            scratch.write_bytes(self.body)
            os.replace(scratch, file)
            return self._answer(201)

        def _mkcol(self, file: Path) -> None:
            try:
                file.mkdir()
            except FileExistsError:
                return self._answer(405)
            except FileNotFoundError:
                return self._answer(409)
            return self._answer(201)

        def _move(self, file: Path) -> None:
            target = self._file(self.headers["Destination"])
            if self.headers.get("Overwrite") == "F" and target.exists():
                return self._answer(412)
            try:
                os.replace(file, target)
            except FileNotFoundError:
                return self._answer(404)
            return self._answer(204)

        def _delete(self, file: Path) -> None:
            if file.is_dir():
                shutil.rmtree(file, ignore_errors=True)
            elif file.exists():
                file.unlink()
            else:
                return self._answer(404)
            return self._answer(204)

    return Handler
