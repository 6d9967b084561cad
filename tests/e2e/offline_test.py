# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Builds from the folder of `./bazelw --vendor`, where there is no network but the loopback
interface, and builds after an archive dropped a locked file."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import clone

# Sets the loopback interface up (SIOCSIFFLAGS, IFF_UP): a bare machine has no `ip`.
_LOOPBACK_UP = (
    'python3 -c "import fcntl, socket, struct; '
    "fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh22x', b'lo', 1))\"; "
)
# A network namespace of its own, with the loopback interface alone.
OFFLINE = ["unshare", "--map-root-user", "--net", "sh", "-c", _LOOPBACK_UP + 'exec "$@"', "sh"]
# The same with an HTTP server of the folder $0 in it.
SERVING = [
    *OFFLINE[:5],
    _LOOPBACK_UP + 'python3 -m http.server --bind 127.0.0.1 8000 --directory "$0" & '
    'sleep 2; "$@"; status=$?; kill $!; exit $status',
]


@pytest.fixture(scope="module")
def vendored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that --vendor of the checkout under test writes, mostly from this user's own
    store."""
    folder = tmp_path_factory.mktemp("vendored")
    subprocess.run(
        ["./bazelw", "--vendor", str(folder)],
        cwd=clone.workspace(),
        env=clone.stranger_environment(),
        check=True,
    )
    return folder


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    subprocess.run(["chmod", "-R", "u+w", str(tmp_path)], check=False)


def test_the_wheel_is_built_without_a_network(base: Path, vendored: Path) -> None:
    routes = subprocess.run(
        [*OFFLINE, "cat", "/proc/net/route"], capture_output=True, text=True, check=True
    ).stdout
    assert len(routes.splitlines()) == 1, "the header alone: nothing but loopback is reached"
    project = clone.Clone(base, "offline", clone.shared_disk_cache(), OFFLINE)
    try:
        project.bazel(
            "build",
            "//python:attn_wheel",
            BAZELW_MODE="debian",
            AITER_ATTN_MIRROR=str(vendored),
            AITER_ATTN_STRICT="1",
        )
        reference = Path(os.environ["REFERENCE_WHEEL"]).resolve()
        assert clone.sha256(project.wheel()) == clone.sha256(reference)
    finally:
        project.close()


def test_a_url_serves_as_the_folder_does(base: Path, vendored: Path) -> None:
    project = clone.Clone(base, "served", wrapper=[*SERVING, str(vendored)])
    try:
        project.bazel(
            "fetch",
            "--repo=@dlpack",
            "--repo=@pybind11",
            "--repo=@buildifier",
            BAZELW_MODE="debian",
            AITER_ATTN_MIRROR="http://127.0.0.1:8000",
        )
    finally:
        project.close()


def vanish(project: clone.Clone, group: str) -> None:
    """Makes the lock name a version of a group's only package that no archive has any more."""
    path = project.root / "toolchains/debian/lock.json"
    lock = json.loads(path.read_text())
    (package,) = lock["groups"][group]["packages"]
    package["path"] = package["path"].replace(package["version"], "0.0-1")
    package |= {"version": "0.0-1", "sha256": "0" * 64}
    path.write_text(json.dumps(lock))


def test_a_vanished_package_is_replaced_loudly_and_the_manifest_says_so(base: Path) -> None:
    project = clone.Clone(base, "drift", clone.shared_disk_cache())
    vanish(project, "dlpack")
    try:
        smoke = "--//kernels:variants=smoke"
        refused = project.bazel(
            "build", "--nobuild", smoke, "//python:manifest", expect=None, AITER_ATTN_STRICT="1"
        )
        assert refused.returncode != 0
        for part in ("libdlpack-dev 0.0-1", "./bazelw --relock debian", "AITER_ATTN_STRICT=1"):
            assert part in refused.stdout
        built = project.bazel("build", smoke, "//python:manifest", AITER_ATTN_STRICT="0")
        assert "WARNING: the Debian lock is stale" in built.stdout
        manifest = json.loads(
            (project.root / "bazel-bin/python/aiter_attn/manifest.json").read_text()
        )
        (changed,) = manifest["not_locked"]
        assert changed.startswith("libdlpack-dev ")
        assert changed != "libdlpack-dev 0.0-1"
    finally:
        project.close()
