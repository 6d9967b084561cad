# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""nginx as a WebDAV server, behind a proxy that has faults on request."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from toolchains.remote import proxy, servers


class Nginx(servers.WebDav):
    # With a character that has to be quoted in a URL.
    WRITER = ("user", "s3cr@t")


class Server(proxy.HttpProxy):
    """`attn` below `root` is what `read_url` names; `write_url` has the writer's credentials."""

    def __init__(self, nginx: Nginx) -> None:
        super().__init__(nginx.url)
        self.nginx = nginx
        self.root = nginx.data
        self.host = self.url.removeprefix("http://")
        self.read_url = f"{self.url}/attn"
        self.write_url = nginx.writers_url.replace(nginx.address, self.host) + "/attn"

    def paths(self, method: str) -> list[str]:
        """The paths of the requests of one method."""
        return [path for asked, path in self.requests if asked == method]


@contextlib.contextmanager
def serve(folder: Path, remove: str = "") -> Iterator[Server]:
    """`folder` holds the server's files; `remove` is left out of its configuration."""
    nginx = Nginx(folder)
    assert remove in nginx.settings
    nginx.settings = nginx.settings.replace(remove, "") if remove else nginx.settings
    with nginx, Server(nginx) as server:
        yield server
