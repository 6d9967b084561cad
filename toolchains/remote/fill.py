# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Fills a cache server with results that a disk cache has, so that tests compile nothing.

Bazel itself does not: what it finds in its disk cache it sends to no server.
"""

from __future__ import annotations

import contextlib
import http.client
import http.server
import re
import subprocess
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from toolchains.remote import servers

_DIGEST = re.compile(rb"[0-9a-f]{64}")


class Entries:
    """Results of actions (`ac`) in a disk cache, and the files that they name (`cas`).

    Both are dicts of hash -> file; `sizes` has those of the actions themselves. Raises KeyError for
    an action that the disk cache lacks.
    """

    def __init__(self, disk_cache: Path, actions: Iterable[str]) -> None:
        def place(kind: str, digest: str) -> Path:
            return disk_cache / kind / digest[:2] / digest

        self.ac: dict[str, Path] = {}
        self.cas: dict[str, Path] = {}
        self.sizes: dict[str, int] = {}
        for action in actions:
            path = place("ac", action)
            if not path.exists():
                raise KeyError(f"{disk_cache} has no result of action {action}")
            self.ac[action] = path
            self.sizes[action] = place("cas", action).stat().st_size
        # Results, and the listings of folders, name files by hashes in ASCII.
        pending = list(self.ac.values())
        while pending:
            for found in _DIGEST.findall(pending.pop().read_bytes()):
                path = place("cas", found.decode())
                if path.name not in self.cas and path.exists():
                    self.cas[path.name] = path
                    pending.append(path)


@contextlib.contextmanager
def serve_disk_cache(disk_cache: Path) -> Iterator[str]:
    """Serves a disk cache over HTTP, to be read; yields the URL."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def translate_path(self, path: str) -> str:
            kind, _, digest = path.strip("/").partition("/")
            return str(disk_cache / kind / digest[:2] / digest)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        listener.daemon_threads = True
        threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{listener.server_port}"
        listener.shutdown()


def link_disk_cache(server: servers.Nginx, disk_cache: Path) -> None:
    """Has the server begin with all that a disk cache has. New results stay the server's."""
    for kind in ("ac", "cas"):
        (server.data / kind).mkdir(parents=True)
        for file in (disk_cache / kind).glob("??/*"):
            (server.data / kind / file.name).symlink_to(file.absolute())


def into_nginx(server: servers.Nginx, entries: Entries) -> None:
    """Sends them with the writer's password. Raises RuntimeError for a refusal."""
    connection = http.client.HTTPConnection(server.address, timeout=60)
    for kind in ("cas", "ac"):
        for digest, path in getattr(entries, kind).items():
            headers = {"Authorization": servers.basic(*server.WRITER)}
            connection.request("PUT", f"/{kind}/{digest}", path.read_bytes(), headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status not in (201, 204):
                raise RuntimeError(f"PUT /{kind}/{digest}: {answer.status} {answer.reason}")
    connection.close()


def into_buildgrid(server: servers.BuildGrid, entries: Entries) -> None:
    """Sends them over gRPC, by the locked Python that has its libraries."""
    lines = [f"cas {h} {p.stat().st_size} {p}\n" for h, p in entries.cas.items()]
    lines += [f"ac {h} {entries.sizes[h]} {p}\n" for h, p in entries.ac.items()]
    program = Path(__file__).with_name("upload_reapi.py")
    subprocess.run(
        [servers.tools_python(), str(program), server.address],
        input="".join(lines),
        text=True,
        env=servers.tools_environment(),
        check=True,
    )
