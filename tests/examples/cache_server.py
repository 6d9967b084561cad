# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A Bazel cache over HTTP that begins with what a disk cache has."""

from __future__ import annotations

import contextlib
import http.server
import os
import re
import secrets
import threading
from collections.abc import Iterator
from pathlib import Path

_PATH = re.compile(r"/(?P<kind>ac|cas)/(?P<digest>[0-9a-f]{64})")


class CacheServer:
    """Serves `root`, and what it lacks from `disk_cache`, a folder of Bazel's.

    hits, written: the paths that were found, and that were written
    """

    def __init__(self, root: Path, disk_cache: Path) -> None:
        self.hits: set[str] = set()
        self.written: set[str] = set()
        self._root = root
        self._disk_cache = disk_cache
        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def find(self, path: str) -> Path | None:
        match = _PATH.fullmatch(path)
        if match is None:
            return None
        kind, digest = match["kind"], match["digest"]
        for file in (self._root / kind / digest, self._disk_cache / kind / digest[:2] / digest):
            if file.is_file():
                return file
        return None

    def write(self, path: str, data: bytes) -> bool:
        if _PATH.fullmatch(path) is None:
            return False
        file = self._root / path.strip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        scratch = file.with_name(secrets.token_hex(8))
        scratch.write_bytes(data)
        os.replace(scratch, file)
        return True


@contextlib.contextmanager
def serve(root: Path, disk_cache: Path) -> Iterator[CacheServer]:
    server = CacheServer(root, disk_cache)
    threading.Thread(target=server._http.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        server._http.shutdown()
        server._http.server_close()


def _handler(server: CacheServer) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            pass

        def _answer(self, status: int, body: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            file = server.find(self.path)
            if file is None:
                return self._answer(404)
            server.hits.add(self.path)
            return self._answer(200, file.read_bytes())

        def do_PUT(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            server.written.add(self.path)
            return self._answer(201 if server.write(self.path, data) else 400)

    return Handler
