# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Puts the pinned Bazel into the user's cache, from locked Debian packages."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping

from toolchains.bazel import bundle, layout, registry
from toolchains.bazel.messages import Progress, note
from toolchains.debian import fetch, lock
from toolchains.locks import store
from toolchains.locks.environment import cache_folder
from toolchains.locks.errors import LocksError, explained

_SCRATCH = ".new-"


@contextlib.contextmanager
def exclusive(cache: str) -> Iterator[None]:
    """Holds the cache's lock. It ends with the process, however that ends."""
    with explained(f"write to the cache folder {cache}", store.OTHER_CACHE):
        os.makedirs(cache, exist_ok=True)
        file = os.open(f"{cache}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note("waiting for another bazelw that is setting up Bazel")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


@contextlib.contextmanager
def _scratch(cache: str) -> Iterator[str]:
    """A folder for a set-up. Folders that a killed set-up left behind are removed first."""
    for stale in glob.glob(f"{glob.escape(cache)}/{_SCRATCH}*"):
        shutil.rmtree(stale, ignore_errors=True)
    with tempfile.TemporaryDirectory(
        prefix=_SCRATCH, dir=cache, ignore_cleanup_errors=True
    ) as folder:
        os.chmod(folder, 0o755)
        yield folder


def check_host() -> None:
    machine = os.uname().machine
    if machine != "x86_64":
        raise LocksError(
            f"this machine is {machine}; the locked Bazel is for x86_64 only. "
            "Put bazelisk on PATH, or name a Bazel with BAZELW_BAZEL"
        )
    if not shutil.which("dpkg-deb"):
        raise LocksError(
            "no dpkg-deb here, which unpacks the locked Bazel (of the package dpkg). "
            "Install it, put bazelisk on PATH, or name a Bazel with BAZELW_BAZEL"
        )


def check_version(packages: Iterable[lock.Package], version: str, where: str) -> None:
    found = [p.version for p in packages if p.name == "bazel-bootstrap"]
    if not found or not found[0].startswith(version + "+"):
        raise LocksError(
            f"{where} has bazel-bootstrap {found[0] if found else 'not at all'}, .bazelversion "
            f"asks for {version}: change them together ({lock.REGENERATE}), or put bazelisk on PATH"
        )


def set_up(
    name: str,
    group: lock.Group,
    offline: registry.Offline,
    environ: Mapping[str, str],
    final: str,
    version: str,
) -> None:
    """Makes the bundle `final` of the Debian group with that name; the caller is alone there."""
    progress = Progress()
    cache = cache_folder(environ)
    size = sum(p.size for p in group.packages) / 1e6
    note(f"setting up Bazel {version} in {final} ({size:.0f} MB of Debian packages, once)")
    start = time.monotonic()
    with _scratch(cache) as scratch:
        root = f"{scratch}/bundle"
        os.mkdir(root)
        used = fetch.fetch(name, environ=environ, warn=note, show=progress.show)
        progress.clear()
        check_version(used, version, "the archive's index")
        fetched = time.monotonic()
        archives = [str(store.Store(environ).path(file)) for file in used.values()]
        bundle.build(archives, root, final, offline, progress)
        shutil.rmtree(final, ignore_errors=True)
        os.rename(root, final)
    command = [f"{final}/{layout.CLIENT}", f"--install_base={final}/{layout.INSTALL_BASE}"]
    got = subprocess.run(
        [*command, "--trust_install_base", "--version"], capture_output=True, text=True
    )
    if got.stdout.strip() != f"bazel {version}":
        raise LocksError(
            f"the Bazel set up in {final} does not work: it answers --version with "
            f"{(got.stdout + got.stderr).strip()[-300:]!r}, not 'bazel {version}'"
        )
    # Written last: a set-up without it is not used, and made anew.
    with open(f"{final}/{layout.DONE}", "w", encoding="utf-8") as f:
        f.write(layout.contents_digest(used) + "\n")
    note(
        f"Bazel {version} is ready: {fetched - start:.1f} s to fetch, "
        f"{time.monotonic() - fetched:.1f} s to unpack"
    )
