# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""HTTP servers on the loopback interface, for tests."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Iterator, Mapping


class Server:
    """Serves `files` (path -> contents) at `url`; `asked` lists the paths that were asked for.

    The next `broken` answers lack their last byte.
    """

    def __init__(self, url: str, files: Mapping[str, bytes]) -> None:
        self.url = url
        self.files = dict(files)
        self.asked: list[str] = []
        self.broken = 0


@contextlib.contextmanager
def serve(files: Mapping[str, bytes], status: int = 200) -> Iterator[Server]:
    """Runs a server. With another `status` every answer is that error."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.asked.append(self.path)
            body = server.files.get(self.path, b"")
            self.send_response(status if body and status == 200 else max(status, 404))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if server.broken:
                server.broken, body = server.broken - 1, body[:-1]
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = Server(f"http://127.0.0.1:{listener.server_port}", files)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
