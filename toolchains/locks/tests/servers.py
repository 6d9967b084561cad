# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Stand-ins for the outside: HTTP servers on the loopback interface, and a full disk."""

from __future__ import annotations

import contextlib
import http.server
import resource
import threading
from collections.abc import Iterator, Mapping


class Server:
    """Serves `files` (path -> contents) at `url`, and records the requests.

    `asked` lists the paths, `credentials` the headers that hold some. The next answers have the
    `statuses`, while there are any; the next `broken` answers lack their last byte.
    """

    def __init__(self, host: str, files: Mapping[str, bytes]) -> None:
        self.host = host
        self.url = f"http://{host}"
        self.files = dict(files)
        self.asked: list[str] = []
        self.credentials: list[str | None] = []
        self.statuses: list[int] = []
        self.broken = 0
        self.headers: dict[str, str] = {}


@contextlib.contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """Makes every write behind that many bytes of a file fail, as it does where a disk is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def serve(files: Mapping[str, bytes], status: int = 200) -> Iterator[Server]:
    """Runs a server. With another `status` every answer is that error."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.asked.append(self.path)
            server.credentials.append(self.headers["Authorization"])
            body = server.files.get(self.path, b"")
            code = server.statuses.pop(0) if server.statuses else status
            self.send_response(404 if code == 200 and not body else code)
            for header in server.headers.items():
                self.send_header(*header)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if server.broken:
                server.broken, body = server.broken - 1, body[:-1]
            self.wfile.write(body)

        # The request of https to a proxy.
        do_CONNECT = do_GET

        def log_message(self, *_: object) -> None:
            pass

    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = Server(f"127.0.0.1:{listener.server_port}", files)
    threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
