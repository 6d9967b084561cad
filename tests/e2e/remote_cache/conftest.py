# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A stranger's checkout, and servers that hold all results of the wheel.

The stranger has another folder, HOME and output root, no disk cache and, where root runs the tests,
another user. The servers hold the contents of the tester's disk cache: run them
with --config=cache. The variant set and the archs are those of the wheel that was built for them.
"""

from __future__ import annotations

import dataclasses
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.e2e import clone
from toolchains.locks import store
from toolchains.remote import fill, servers
from toolchains.remote.proxy import HttpProxy

WHEEL = "//python:attn_wheel"
_NOBODY = "65534"


class Stranger(clone.Clone):
    """A clone whose builds have no cache but the one that a test names."""

    def __init__(self, base: Path, mirror: str) -> None:
        root = os.geteuid() == 0
        other = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
        path = f"PATH={os.defpath}" if root else f"PATH={os.environ['PATH']}"
        fetching = [
            # From the files that this machine has fetched before, by name of their sha256.
            f"AITER_ATTN_MIRROR={mirror}",
            # As --config=ci has it: a build with another value fetches all repositories anew.
            "AITER_ATTN_STRICT=1",
        ]
        wrapper = [*(other if root else []), "env", path, *fetching]
        super().__init__(base, "stranger", wrapper=wrapper)
        self.flags: list[str] = []
        if root:
            subprocess.run(["chown", "-R", f"{_NOBODY}:{_NOBODY}", str(base)], check=True)

    def remote(
        self, url: str, *flags: str, expect: int | None = 0, target: str = WHEEL
    ) -> subprocess.CompletedProcess[str]:
        """Builds with that cache, read only, and without any output of earlier builds.

        `bazel clean` would have everything analysed again. It is enough to delete the files, as
        again() has Bazel trust no result of a cache beyond the build that it was for.
        """
        for folder in (self.root / "bazel-out").glob("*-opt*"):
            subprocess.run(["chmod", "-R", "u+w", str(folder)], check=True)
            shutil.rmtree(folder)
        return self.again(url, *flags, expect=expect, target=target)

    def again(
        self, url: str, *flags: str, expect: int | None = 0, target: str = WHEEL
    ) -> subprocess.CompletedProcess[str]:
        """The same, on top of what is there."""
        self.log.unlink(missing_ok=True)
        return self.bazel(
            "build",
            f"--execution_log_json_file={self.log}",
            "--config=remote-cache",
            "--experimental_remote_cache_ttl=0s",
            f"--remote_cache={url}",
            *self.flags,
            *flags,
            target,
            expect=expect,
        )

    @property
    def log(self) -> Path:
        return self.root.parent / "execution.json"

    def spawns(self) -> clone.Spawns:
        """Actions that the last build ran, and those that it had from the cache."""
        return clone.Spawns(self.log)


@dataclasses.dataclass(frozen=True)
class Reference:
    """The wheel of the checkout under test, and all actions behind it."""

    wheel: Path
    actions: clone.Spawns
    entries: fill.Entries

    @property
    def sha256(self) -> str:
        return clone.sha256(self.wheel)

    def bytes_needed(self) -> int:
        """Outputs that Bazel has to download: the wheel, and the lists of headers that sources
        include."""
        lists = {
            digest
            for spawn in self.actions.all
            for path, digest in spawn.outputs
            if path.endswith(".d")
        }
        sizes = (self.entries.cas[digest].stat().st_size for digest in lists)
        return self.wheel.stat().st_size + sum(sizes)

    def bytes_in_all(self) -> int:
        return sum(path.stat().st_size for path in self.entries.cas.values())


@pytest.fixture(scope="session")
def mirror() -> Iterator[str]:
    """The locked files that this user has, over HTTP: another user cannot read them."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = partial(Handler, directory=str(store.Store(os.environ).folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as listener:
        listener.daemon_threads = True
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listener.server_port}"
        listener.shutdown()


@pytest.fixture(scope="session")
def stranger(mirror: str) -> Iterator[Stranger]:
    # Not pytest's own folder: no other user reaches that.
    base = Path(tempfile.mkdtemp(prefix="stranger-", dir="/tmp"))
    base.chmod(0o755)
    made = Stranger(base, mirror)
    yield made
    made.close()
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="session")
def reference(stranger: Stranger) -> Reference:
    """Has the stranger build the wheel once, out of this user's disk cache served over HTTP."""
    wheel = Path(os.environ["REFERENCE_WHEEL"]).resolve()
    manifest = json.loads(zipfile.ZipFile(wheel).read("aiter_attn/manifest.json"))
    stranger.flags = [
        f"--//kernels:variants={manifest['variant_set']}",
        f"--//kernels:archs={','.join(manifest['archs'])}",
        f"--//toolchains/python:abi={wheel.name.split('-')[2]}",
    ]
    disk_cache = clone.shared_disk_cache()
    with fill.serve_disk_cache(disk_cache) as url:
        stranger.remote(url)
    actions = stranger.spawns()
    assert not actions.executed, (
        f"{disk_cache} lacks results; run the tests with --config=cache: {actions.executed}"
    )
    assert clone.sha256(stranger.wheel()) == clone.sha256(wheel)
    return Reference(wheel, actions, fill.Entries(disk_cache, [s.action for s in actions.all]))


@pytest.fixture(scope="session")
def nginx(
    reference: Reference, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[servers.Nginx]:
    """Holds every result of the wheel."""
    with servers.Nginx(tmp_path_factory.mktemp("nginx")) as server:
        fill.into_nginx(server, reference.entries)
        yield server


@pytest.fixture(scope="session")
def buildgrid(
    reference: Reference, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[servers.BuildGrid]:
    """Holds every result of the wheel."""
    with servers.BuildGrid(tmp_path_factory.mktemp("buildgrid")) as server:
        fill.into_buildgrid(server, reference.entries)
        yield server


@pytest.fixture
def proxy(nginx: servers.Nginx) -> Iterator[HttpProxy]:
    """In front of nginx."""
    with HttpProxy(nginx.url) as made:
        yield made
