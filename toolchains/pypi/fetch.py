# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Fetches locked files of Python distributions.

An index keeps the files that it has served: one that is gone was withdrawn, and no signed document
names a successor. So that is an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from toolchains.locks import entries, store
from toolchains.locks.errors import LocksError
from toolchains.pypi import index, relock


def locked() -> dict[tuple[str, str], dict[str, str]]:
    """Returns (distribution, kind) -> its entry, with filename and sha256.

    Raises LocksError for an entry that cannot be used.
    """
    return entries.read(
        relock.LOCK,
        lambda data: {
            (name, kind): entry
            for name, distribution in data["distributions"].items()
            for kind, entry in distribution["files"].items()
        },
        {"filename": r"[A-Za-z0-9_.+!-]+", "sha256": entries.SHA256},
        f"restore the file or run {relock.REGENERATE}",
    )


def file(distribution: str, entry: Mapping[str, str], environ: Mapping[str, str]) -> store.File:
    """Returns the file of a lock's entry, with the place where the index says that it is."""

    def urls() -> Iterator[str]:
        project = index.project(distribution)
        if index.is_local(name):
            yield from (f.url for f in index.read_added(project, environ) if f.filename == name)
        url = index.find(environ)
        found = [f.url for f in index.read_page(url, project) if f.filename == name]
        if not found:
            raise LocksError(f"{index.page_url(url, project)} does not list the locked file {name}")
        yield from found

    name = entry["filename"]
    return store.File(entry["sha256"], name, urls)


def fetch(
    distribution: str,
    kind: str,
    environ: Mapping[str, str] = os.environ,
) -> store.File:
    """Brings one file of a distribution into the store: "sdist", "any", "cp311" ...

    Raises LocksError naming the lock's files, or why the file cannot be had.
    """
    files = locked()
    if (distribution, kind) not in files:
        names = sorted({name for name, _ in files})
        kinds = sorted(k for name, k in files if name == distribution)
        lacks = (
            f"distribution {distribution!r} has no file of kind {kind!r}; there are {kinds}"
            if kinds
            else f"no distribution {distribution!r}; there are {', '.join(names)}"
        )
        raise LocksError(
            f"{relock.LOCK}: {lacks}. Add it to requirements.toml and run {relock.REGENERATE}"
        )
    return store.Store(environ).fetch_one(
        file(distribution, files[distribution, kind], environ),
        f"Check the network, or set {index.VARIABLE} to a simple index's URL"
        f"{store.OFFLINE}; if the lock is wrong, restore it or run {relock.REGENERATE}",
    )


def fetched(distribution: str, kind: str) -> list[store.Fetched]:
    """One file of a distribution, for toolchains/locks/fetch.py."""
    got = fetch(distribution, kind)
    suffix = ".tar.gz" if got.name.endswith(".tar.gz") else ".zip"
    return [store.Fetched(got, suffix, {"name": distribution, "filename": got.name})]
