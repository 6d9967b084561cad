# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`./bazelw --vendor DIR`: every locked file in one folder, for AITER_ATTN_MIRROR.

But for local versions of Python distributions, which only some machines can have: tests do without.

A file is named by its sha256; index.json describes each. The folder serves whole builds without
any network, as a folder or behind any HTTP server.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Mapping

from toolchains.debian import fetch as debian
from toolchains.debian import lock
from toolchains.locks import store
from toolchains.locks.errors import LocksError, explained
from toolchains.locks.whole import whole
from toolchains.npm import fetch as npm
from toolchains.pypi import fetch as pypi
from toolchains.pypi import index

INDEX = "index.json"


def locked(environ: Mapping[str, str]) -> dict[store.File, dict[str, object]]:
    """Returns every locked file that a build may need, and its entry in index.json."""
    files: dict[store.File, dict[str, object]] = {}
    for group in lock.read(lock.LOCK).values():
        for package, file in debian.files(group.packages, environ).items():
            files[file] = {
                "file": package.path.rsplit("/", 1)[-1],
                "source": f"Debian {group.suite}",
                "time": package.time,
            }
    for (distribution, _), entry in pypi.locked().items():
        if index.is_local(entry["filename"]):
            continue
        file = pypi.file(distribution, entry, environ)
        files[file] = {"file": entry["filename"], "source": f"PyPI {distribution}"}
    for name, entry in npm.locked().items():
        file = npm.file(name, entry, environ)
        files[file] = {"file": f"{name} {entry['version']}", "source": "npm"}
    return files


def vendor(
    folder: pathlib.Path, environ: Mapping[str, str], show: Callable[[str], None]
) -> tuple[int, int]:
    """Fills `folder`. Returns how many files it holds, and their bytes.

    Files that are there already are kept. index.json is written last. Raises LocksError where a
    locked file cannot be had (no other is vendored), or `folder` cannot be written to.
    """
    files = locked(environ)
    shelf = store.Store(environ)
    failed = shelf.fetch(files, show)
    if failed:
        raise LocksError(
            f"--vendor: {store.tell(failed)}. If it is gone for good, "
            f"lock anew with ./bazelw --relock, or set {debian.SNAPSHOT}"
        )
    with explained(f"make the folder {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        shelf.place(file, folder / file.sha256)
    about = {file.sha256: entry for file, entry in sorted(files.items(), key=lambda f: f[0].name)}
    with whole(folder / INDEX) as part:
        part.write_text(json.dumps({"files": about}, indent=1) + "\n", encoding="utf-8")
    return len(files), sum((folder / file.sha256).stat().st_size for file in files)
