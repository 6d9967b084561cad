# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Fetches locked files of Python distributions.

An index keeps what it has served: a file that is gone was withdrawn, and nothing signed says what
would stand in for it. So that is an error.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping

from toolchains.locks import store
from toolchains.locks.errors import LocksError
from toolchains.pypi import index, relock


def locked() -> dict[tuple[str, str], dict[str, str]]:
    """Returns (distribution, kind) -> its entry, with filename and sha256.

    Raises LocksError for an entry that cannot be used.
    """
    restore = f"restore the file or run {relock.REGENERATE}"
    try:
        distributions = json.loads(relock.LOCK.read_text(encoding="utf-8"))["distributions"]
        entries = {
            (name, kind): entry
            for name, distribution in distributions.items()
            for kind, entry in distribution["files"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise LocksError(f"{relock.LOCK}: not a lock ({type(e).__name__}: {e}); {restore}") from e
    for (name, kind), entry in entries.items():
        for key, pattern in (("filename", r"[A-Za-z0-9_.+!-]+"), ("sha256", r"[0-9a-f]{64}")):
            if not re.fullmatch(pattern, str(entry.get(key))):
                raise LocksError(
                    f"{relock.LOCK}: distribution {name!r}, file {kind!r}: {key} is "
                    f"{entry.get(key)!r}, it must match {pattern}; {restore}"
                )
    return entries


def file(distribution: str, entry: Mapping[str, str], environ: Mapping[str, str]) -> store.File:
    """Returns the file of a lock's entry, with the place where the index says that it is."""

    def urls() -> Iterator[str]:
        url = index.find(environ)
        found = [f.url for f in index.read_page(url, distribution) if f.filename == name]
        if not found:
            raise index.PackageIndexError(
                f"{index.page_url(url, distribution)} does not list the locked file {name}"
            )
        yield from found

    name = entry["filename"]
    return store.File(entry["sha256"], name, urls)


def fetch(
    distribution: str,
    kind: str,
    environ: Mapping[str, str] = os.environ,
    show: Callable[[str], None] = lambda text: None,
) -> store.File:
    """Brings one file of a distribution into the store: "sdist", "any", "cp311" ...

    Raises LocksError naming what the lock has, or why the file cannot be had.
    """
    entries = locked()
    if (distribution, kind) not in entries:
        names = sorted({name for name, _ in entries})
        kinds = sorted(k for name, k in entries if name == distribution)
        lacks = (
            f"distribution {distribution!r} has no file of kind {kind!r}; there are {kinds}"
            if kinds
            else f"no distribution {distribution!r}; there are {', '.join(names)}"
        )
        raise LocksError(
            f"{relock.LOCK}: {lacks}. Add it to requirements.toml and run {relock.REGENERATE}"
        )
    wanted = file(distribution, entries[distribution, kind], environ)
    failed = store.Store(environ).fetch([wanted], show)
    if failed:
        raise LocksError(
            f"{store.tell(failed)}. Check the network, or set {index.VARIABLE} to a simple "
            f"index's URL; if the lock is wrong, restore it or run {relock.REGENERATE}"
        )
    return wanted
