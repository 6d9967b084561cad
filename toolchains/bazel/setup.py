# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Sets up the pinned Bazel in the user's cache, once, from locked Debian packages."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping

from toolchains.bazel import bundle, registry, store
from toolchains.bazel.errors import BazelwError, Progress, note
from toolchains.debian import lock, mirrors, relock

STRICT = "AITER_ATTN_STRICT"
GROUP = "bazel"

_SCRATCH = ".new-"
_DONE = "complete"
# Paths in the cache folder stand in rc files, run paths and URLs, unquoted.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/_.,+@=~-]+")


def cache_folder(environ: Mapping[str, str]) -> str:
    """Returns the absolute folder that set-ups live in."""
    chosen = environ.get("BAZELW_CACHE")
    if not chosen:
        base = environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        chosen = os.path.join(base, "bazelw")
    folder = os.path.abspath(chosen)
    if not _PLAIN_PATH.fullmatch(folder):
        raise BazelwError(
            f"the cache folder {folder!r} holds a character that is not one of letters, digits "
            "and /_.,+@=~-; set BAZELW_CACHE to another folder"
        )
    return folder


def contents_digest(group: lock.Group) -> str:
    lines = "".join(f"{p.name} {p.sha256}\n" for p in group.packages)
    return hashlib.sha256(lines.encode()).hexdigest()


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
    for tool in ("apt-get", "dpkg-deb", store.APT_HELPER):
        if not shutil.which(tool):
            raise BazelwError(
                f"no {tool} here, which the locked Bazel is set up with (it is Debian's). "
                "Put bazelisk on PATH, or name a Bazel with BAZELW_BAZEL"
            )


def _check_version(group: lock.Group, version: str, where: str) -> None:
    found = [p.version for p in group.packages if p.name == "bazel-bootstrap"]
    if not found or not found[0].startswith(version + "+"):
        raise BazelwError(
            f"{where} has bazel-bootstrap {found[0] if found else 'not at all'}, .bazelversion "
            f"asks for {version}: change them together ({lock.REGENERATE}), or put bazelisk on PATH"
        )


def _resolve_anew(group: lock.Group, missing: dict[lock.Package, str], strict: bool) -> lock.Group:
    """Returns what the archive's signed index has in place of packages that are gone.

    Raises BazelwError where that is not allowed (strict), not possible, or where the lock, not
    the archive, is at fault.
    """
    first, reason = next(iter(missing.items()))
    what = (
        f"cannot fetch {len(missing)} of {len(group.packages)} locked packages, "
        f"the first is {first.name} {first.version} ({reason})"
    )
    if not any(map(store.archive_answered, missing.values())):
        raise BazelwError(
            f"{what}. Check the network, or set {mirrors.VARIABLE} to another archive's URL"
        )
    if strict:
        raise BazelwError(
            f"{what}, and {STRICT}=1 allows no others. "
            f"Lock anew with {lock.REGENERATE} and commit it"
        )
    try:
        anew = relock.resolve_anew([GROUP])[GROUP]
    except relock.RelockError as e:
        raise BazelwError(f"{what}. {e}") from e
    by_path = {p.path: p for p in anew.packages}
    for old, reason in missing.items():
        new = by_path.get(old.path)
        if new and (new.sha256, new.size) != (old.sha256, old.size):
            raise BazelwError(
                f"the lock says sha256 {old.sha256}, {old.size} bytes for {old.path}, the "
                f"archive's signed index says {new.sha256}, {new.size}: the lock is corrupted. "
                f"Restore toolchains/debian/lock.json or run {lock.REGENERATE}"
            )
        if new:
            raise BazelwError(
                f"cannot fetch {old.path} although the index has it ({reason}); try again, or "
                f"set {mirrors.VARIABLE} to another mirror's URL"
            )
    gone = ", ".join(f"{p.name} {p.version}" for p in missing)
    note(
        f"WARNING: toolchains/debian/lock.json is stale: the archive no longer has {gone}. "
        "Using what its signed index has now; record that with "
        f"{lock.REGENERATE} and commit it ({STRICT}=1 makes this an error)"
    )
    return anew


def _fetch(
    group: lock.Group, cache: str, scratch: str, version: str, strict: bool, progress: Progress
) -> lock.Group:
    """Brings all packages into the cache. Returns those that were fetched: mostly `group`."""
    archives = mirrors.find()
    debs = f"{cache}/debs"
    missing = store.fetch(group.packages, debs, scratch, archives, progress)
    if not missing:
        return group
    anew = _resolve_anew(group, missing, strict)
    _check_version(anew, version, "the archive's index")
    missing = store.fetch(anew.packages, debs, scratch, archives, progress)
    if missing:
        package, reason = next(iter(missing.items()))
        raise BazelwError(f"cannot fetch {package.path} although the index has it ({reason})")
    return anew


def _set_up(
    group: lock.Group, offline: registry.Offline, cache: str, final: str, version: str, strict: bool
) -> None:
    progress = Progress()
    size = sum(p.size for p in group.packages) / 1e6
    note(f"setting up Bazel {version} in {final} ({size:.0f} MB of Debian packages, once)")
    start = time.monotonic()
    with _scratch(cache) as scratch:
        parts, root = f"{scratch}/debs", f"{scratch}/bundle"
        os.mkdir(parts)
        os.mkdir(root)
        used = _fetch(group, cache, parts, version, strict, progress)
        fetched = time.monotonic()
        archives = [store.location(f"{cache}/debs", p) for p in used.packages]
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
    # Only what this set-up was made of is kept, for making it again.
    kept = {os.path.basename(a) for a in archives}
    for name in set(os.listdir(f"{cache}/debs")) - kept:
        os.unlink(f"{cache}/debs/{name}")
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
    digest = contents_digest(group)
    key = hashlib.sha256(f"{bundle.FORMAT}\n{digest}\n{offline_text}".encode()).hexdigest()[:16]
    cache = cache_folder(environ)
    final = os.path.join(cache, f"bazel-{version}-{key}")
    strict = environ.get(STRICT) == "1"

    def ready() -> bool:
        used = _done(final)
        return used == digest or (used is not None and not strict)

    if not ready():
        _check_host()
        _check_version(group, version, "toolchains/debian/lock.json")
        offline = registry.parse_offline(offline_text, "toolchains/bazel/offline.toml")
        with _exclusive(cache):
            if not ready():
                _set_up(group, offline, cache, final, version, strict)
    bundle.refresh_trust_store(final)
    return [f"{final}/{bundle.CLIENT}", "--nosystem_rc", f"--bazelrc={final}/{bundle.RC}"]
