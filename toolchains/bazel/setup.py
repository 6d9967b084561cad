# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Sets up the pinned Bazel in the user's cache, once, from locked Debian packages."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping

from toolchains.bazel import bundle, registry
from toolchains.bazel.errors import BazelwError, Progress, note
from toolchains.debian import fetch, lock, relock
from toolchains.locks import store

GROUP = "bazel"

_SCRATCH = ".new-"
_DONE = "complete"


def contents_digest(packages: Iterable[lock.Package]) -> str:
    return store.identity({p.name: p.sha256 for p in packages})


def _done(final: str) -> str | None:
    """Returns the digest of the packages a finished set-up was made of, None if unfinished."""
    try:
        with open(f"{final}/{_DONE}", encoding="utf-8") as f:
            return f.read().strip()
    except OSError:
        return None  # not there, or out of reach: the set-up says which


@contextlib.contextmanager
def _exclusive(cache: str) -> Iterator[None]:
    """Holds the cache's lock. It ends with the process, however that ends."""
    try:
        os.makedirs(cache, exist_ok=True)
        file = os.open(f"{cache}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as e:
        raise BazelwError(
            f"cannot write to the cache folder {cache} ({e.strerror}); "
            "set BAZELW_CACHE to a folder that you can write to"
        ) from e
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


def _check_host() -> None:
    machine = os.uname().machine
    if machine != "x86_64":
        raise BazelwError(
            f"this machine is {machine}; the locked Bazel is for x86_64 only. "
            "Put bazelisk on PATH, or name a Bazel with BAZELW_BAZEL"
        )
    for tool in ("apt-get", "dpkg-deb"):
        if not shutil.which(tool):
            raise BazelwError(
                f"no {tool} here, which the locked Bazel is set up with (it is Debian's). "
                "Put bazelisk on PATH, or name a Bazel with BAZELW_BAZEL"
            )


def _check_version(packages: Iterable[lock.Package], version: str, where: str) -> None:
    found = [p.version for p in packages if p.name == "bazel-bootstrap"]
    if not found or not found[0].startswith(version + "+"):
        raise BazelwError(
            f"{where} has bazel-bootstrap {found[0] if found else 'not at all'}, .bazelversion "
            f"asks for {version}: change them together ({lock.REGENERATE}), or put bazelisk on PATH"
        )


def _set_up(
    group: lock.Group,
    offline: registry.Offline,
    environ: Mapping[str, str],
    final: str,
    version: str,
) -> None:
    progress = Progress()
    cache = store.cache_folder(environ)
    size = sum(p.size for p in group.packages) / 1e6
    note(f"setting up Bazel {version} in {final} ({size:.0f} MB of Debian packages, once)")
    start = time.monotonic()
    with _scratch(cache) as scratch:
        root = f"{scratch}/bundle"
        os.mkdir(root)
        used = fetch.fetch(GROUP, environ=environ, warn=note, show=progress.show)
        progress.clear()
        _check_version(used, version, "the archive's index")
        fetched = time.monotonic()
        archives = [str(store.Store(environ).path(file)) for file in used.values()]
        bundle.build(archives, root, final, offline, progress)
        shutil.rmtree(final, ignore_errors=True)
        os.rename(root, final)
    command = [f"{final}/{bundle.CLIENT}", f"--install_base={final}/{bundle.INSTALL_BASE}"]
    got = subprocess.run(
        [*command, "--trust_install_base", "--version"], capture_output=True, text=True
    )
    if got.stdout.strip() != f"bazel {version}":
        raise BazelwError(
            f"the Bazel set up in {final} does not work: it answers --version with "
            f"{(got.stdout + got.stderr).strip()[-300:]!r}, not 'bazel {version}'"
        )
    # Written last: a set-up without it is not used, and made anew.
    with open(f"{final}/{_DONE}", "w", encoding="utf-8") as f:
        f.write(contents_digest(used) + "\n")
    note(
        f"Bazel {version} is ready: {fetched - start:.1f} s to fetch, "
        f"{time.monotonic() - fetched:.1f} s to unpack"
    )


def debian_bazel(version: str, here: str, environ: Mapping[str, str]) -> list[str]:
    """Returns the command of the pinned Bazel, set up first where it is not yet.

    `here` is the folder of offline.toml. At most one set-up happens at a time per cache
    folder; others wait for it. A set-up becomes visible by one rename and counts when its
    marker is written, so that one interrupted at any point is simply done again.
    """
    text = relock.LOCK.read_text(encoding="utf-8")
    group = lock.get_group(lock.parse(text, "toolchains/debian/lock.json"), GROUP, "lock.json")
    with open(f"{here}/offline.toml", encoding="utf-8") as f:
        offline_text = f.read()
    digest = contents_digest(group.packages)
    key = hashlib.sha256(f"{bundle.FORMAT}\n{digest}\n{offline_text}".encode()).hexdigest()[:16]
    cache = store.cache_folder(environ)
    final = os.path.join(cache, f"bazel-{version}-{key}")
    strict = fetch.is_strict(environ)

    def ready() -> bool:
        used = _done(final)
        return used == digest or (used is not None and not strict)

    if not ready():
        _check_host()
        _check_version(group.packages, version, "toolchains/debian/lock.json")
        offline = registry.parse_offline(offline_text, "toolchains/bazel/offline.toml")
        with _exclusive(cache):
            if not ready():
                _set_up(group, offline, environ, final, version)
    bundle.refresh_trust_store(final)
    return [f"{final}/{bundle.CLIENT}", "--nosystem_rc", f"--bazelrc={final}/{bundle.RC}"]
