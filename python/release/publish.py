# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Brings a release to a target: its files first, then pages of package indexes, the index last,
each read back."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from pathlib import Path

from python.release import documents
from python.release.documents import Release
from python.release.errors import ReleaseError
from python.release.targets import Target

_LOCK = "index.lock"
# Another publisher may take the lock over from one that stalls; that one begins again.
_ATTEMPTS = 5


@dataclasses.dataclass(frozen=True)
class Report:
    """The work done. `kept` files were there already, with the right bytes."""

    written: int
    kept: int
    bytes_written: int


def publish(release: Release, target: Target, show: Callable[[str], None]) -> Report:
    """Publishes; files that an earlier run has brought there are not sent again.

    Nothing names a file before it is there and was read back. Raises ReleaseError; the next run
    finds the files that are there by then.
    """
    contents: dict[str, tuple[Path | bytes, str, int]] = {
        file.path: (file.contents, file.sha256, file.size)
        # The smallest first: a server that refuses is found out at no cost.
        for file in sorted(release.files, key=lambda file: (file.size, file.path))
    }
    for name, data in (("index.html", release.page), ("release.json", release.document)):
        digest = hashlib.sha256(data).hexdigest()
        contents[f"{release.folder}/{name}"] = (data, digest, len(data))
    written = kept = size = 0
    for path, (data, digest, length) in contents.items():
        if target.digest(path) == digest:
            kept += 1
            continue
        show(f"writing {path} ({length} bytes)")
        target.write(path, data)
        _verify(target, path, digest)
        written, size = written + 1, size + length
    _enter(release, target)
    return Report(written, kept, size)


def _verify(target: Target, path: str, digest: str) -> None:
    found = target.digest(path)
    if found != digest:
        what = "is not there" if found is None else f"has the sha256 {found}"
        raise ReleaseError(
            f"{target.shown}: {path} was written, and {what}, not {digest}. Does what answers "
            "there keep files, and does nothing between change them? The index is as it was"
        )


def _replace(
    target: Target, replace: Callable[[str, bytes], bool], path: str, contents: bytes
) -> bool:
    """False: the lock was lost."""
    digest = hashlib.sha256(contents).hexdigest()
    if target.digest(path) == digest:
        return True
    if not replace(path, contents):
        return False
    _verify(target, path, digest)
    return True


def _enter(release: Release, target: Target) -> None:
    """Enters the release into the index, which other publishers change, too."""
    where = f"{target.shown}: {documents.INDEX}"
    for _ in range(_ATTEMPTS):
        with target.lock(_LOCK) as replace:
            old = target.read(documents.INDEX)
            new = documents.with_entry(old, release.entry, where)
            if new == old:
                return
            # The index last: a publisher that comes after one that was killed before it makes the
            # pages anew.
            if all(_replace(target, replace, *page) for page in documents.pages(new).items()) and (
                _replace(target, replace, documents.INDEX, new)
            ):
                return
    raise ReleaseError(
        f"{where}: other publishers took over the lock {_ATTEMPTS} times while it was written; "
        "run this again"
    )
