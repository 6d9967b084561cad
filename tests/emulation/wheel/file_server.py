# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A server of a folder's files, over HTTP or over TLS."""

from __future__ import annotations

import contextlib
import functools
import http.server
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["served"]

_TLS = Path(__file__).parent / "tls"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@contextlib.contextmanager
def served(root: Path, tls: bool) -> Iterator[str]:
    """The URL of a folder's files."""
    handler = functools.partial(_Quiet, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(_TLS / "cert.pem", _TLS / "key.pem")
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
