# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Fetches locked Debian packages; one that has vanished is resolved anew, loudly.

A file is looked for in AITER_ATTN_MIRROR, then in the archives of this machine, then in the archive
of AITER_ATTN_DEBIAN_SNAPSHOT. Only then is the group resolved anew from the archive's signed index.
"""

from __future__ import annotations

import datetime
import functools
import os
import string
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from toolchains.debian import lock, mirrors, relock
from toolchains.locks import store
from toolchains.locks.environment import STRICT, is_strict
from toolchains.locks.errors import LocksError

SNAPSHOT = "AITER_ATTN_DEBIAN_SNAPSHOT"


def _warn(message: str) -> None:
    print(message, file=sys.stderr)


def snapshot_urls(pattern: str, package: lock.Package) -> Iterator[str]:
    """Yields where an archive of past states has a package.

    `pattern` is the URL with the placeholders {time}, like 20260131T235959Z, and {path}, like
    pool/main/z/zlib/zlib1g_1.3_amd64.deb. The time is that of the signed index which named the
    file, then a day later: an archive takes its picture some hours after the index is signed, and
    a file stays in the pool for more than a day after the index dropped it.
    """
    if not pattern:
        return
    try:
        names = {name for _, name, _, _ in string.Formatter().parse(pattern) if name is not None}
    except ValueError as e:
        raise LocksError(f"{SNAPSHOT} is {pattern!r}: {e}") from e
    if names != {"path", "time"}:
        raise LocksError(f"{SNAPSHOT} is {pattern!r}: it needs the placeholders {{time}}, {{path}}")
    time = datetime.datetime.strptime(package.time, lock.TIME_FORMAT)
    for moment in (time, time + datetime.timedelta(days=1)):
        yield pattern.format(time=moment.strftime(lock.TIME_FORMAT), path=package.path)


def files(
    packages: Iterable[lock.Package], environ: Mapping[str, str]
) -> dict[lock.Package, store.File]:
    """Returns the files of packages, with the places where they may be."""
    archives = functools.cache(lambda: mirrors.find(environ))

    def urls(package: lock.Package) -> Iterator[str]:
        yield from (f"{archive}/{package.path}" for archive in archives())
        yield from snapshot_urls(environ.get(SNAPSHOT, ""), package)

    return {
        p: store.File(p.sha256, f"{p.name} {p.version}", functools.partial(urls, p))
        for p in packages
    }


def _resolve_anew(
    group: str, old: lock.Group, failed: Mapping[store.File, store.Failure], strict: bool
) -> lock.Group:
    """Returns the successors, in the archive's signed index, of packages that are gone.

    Raises LocksError where that is not allowed (strict), not possible, or where the lock, not the
    archive, is at fault.
    """
    what = f"group {group!r}: {store.tell(failed)}"
    if not any(failure.answered for failure in failed.values()):
        raise LocksError(
            f"{what}. Check the network, or set {mirrors.VARIABLE} to an archive's URL"
            f"{store.OFFLINE}"
        )
    if strict:
        raise LocksError(
            f"{what}. {STRICT}=1 allows no others: lock anew with {lock.REGENERATE} and commit it"
        )
    try:
        anew = relock.resolve_anew([group])[group]
    except LocksError as e:
        raise LocksError(f"{what}; and it cannot be resolved anew: {e}") from e
    by_path = {p.path: p for p in anew.packages}
    gone = {file.sha256: failure for file, failure in failed.items()}
    for package in old.packages:
        new = by_path.get(package.path)
        if package.sha256 not in gone or not new:
            continue
        if new.sha256 != package.sha256:
            raise LocksError(
                f"the lock says sha256 {package.sha256} for {package.path}, the archive's signed "
                f"index says {new.sha256}: the lock is corrupted. "
                f"Restore toolchains/debian/lock.json or run {lock.REGENERATE}"
            )
        raise LocksError(f"{what}, although the index has it; try again, or set {mirrors.VARIABLE}")
    return anew


def fetch(
    group: str,
    names: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
    warn: Callable[[str], None] = _warn,
    show: Callable[[str], None] = lambda text: None,
) -> dict[lock.Package, store.File]:
    """Brings packages of a group, all or those named, into the store.

    Returns the packages that were taken, by name, with their files: those that are locked, or, if
    one of them has vanished, those of the signed index of today. `warn` is told of that.
    """
    strict = is_strict(environ)
    locked = lock.get_group(lock.read(lock.LOCK), group, str(lock.LOCK))
    shelf = store.Store(environ)
    wanted = files(lock.choose(locked, names, f"{lock.LOCK}: group {group!r}"), environ)
    failed = shelf.fetch(wanted.values(), show)
    if not failed:
        return wanted
    anew = _resolve_anew(group, locked, failed, strict)
    changes = relock.changes({group: locked}, {group: anew})
    wanted = files(lock.choose(anew, names, f"the archive's index: group {group!r}"), environ)
    failed = shelf.fetch(wanted.values(), show)
    if failed:
        raise LocksError(f"{store.tell(failed)}, although the archive's index names it; try again")
    warn(
        "WARNING: the Debian lock is stale: the archive no longer has all of it. Taken instead, "
        f"from its signed index: {'; '.join(changes)}. What is built is not what was locked. "
        f"Lock anew with {lock.REGENERATE} and commit it ({STRICT}=1 makes this an error)"
    )
    return wanted


def fetched(group: str, *names: str) -> list[store.Fetched]:
    """The packages of a group, all or those named, for toolchains/locks/fetch.py."""
    return [
        store.Fetched(file, ".deb", {"name": package.name, "version": package.version})
        for package, file in fetch(group, names).items()
    ]
