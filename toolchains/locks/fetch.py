# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The program that repository rules fetch locked files with; fetch.bzl runs it.

    fetch.py debian FOLDER GROUP [PACKAGE]...
    fetch.py pypi FOLDER DISTRIBUTION KIND
    fetch.py npm FOLDER PACKAGE
        puts files into FOLDER and prints a JSON list of them: name, version (of a Debian package)
        or filename, sha256, and file, the place below FOLDER
    fetch.py identity NAME=DIGEST...
        prints one digest that stands for all; their order does not matter

Warnings and errors go to stderr, the latter with exit status 1.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys

if sys.version_info < (3, 11):
    sys.exit(f"python3 on PATH is {sys.version.split()[0]}; 3.11 or newer is needed")
sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent.parent.parent))

from toolchains.debian import fetch as debian
from toolchains.locks import store
from toolchains.locks.errors import LocksError, explained
from toolchains.locks.identity import identity
from toolchains.npm import fetch as npm
from toolchains.pypi import fetch as pypi


def _place(file: store.File, folder: str, suffix: str, **about: str) -> dict[str, str]:
    target = pathlib.Path(folder, file.sha256 + suffix)
    target.parent.mkdir(parents=True, exist_ok=True)
    store.Store(os.environ).place(file, target)
    return {**about, "sha256": file.sha256, "file": str(target)}


def _run(kind: str, *arguments: str) -> str:
    if kind == "identity":
        return identity([a.split("=") for a in arguments])
    folder, name, *rest = arguments
    if kind == "debian":
        packages = debian.fetch(name, rest)
        placed = [
            _place(file, folder, ".deb", name=p.name, version=p.version)
            for p, file in packages.items()
        ]
    elif kind == "pypi":
        file = pypi.fetch(name, *rest)
        suffix = ".tar.gz" if file.name.endswith(".tar.gz") else ".zip"
        placed = [_place(file, folder, suffix, name=name, filename=file.name)]
    else:
        placed = [_place(npm.fetch(name), folder, ".tgz", name=name)]
    return json.dumps(placed)


def main() -> None:
    try:
        with explained("fetch what is locked"):
            print(_run(*sys.argv[1:]))
    except LocksError as e:
        sys.exit(str(e))


if __name__ == "__main__":
    main()
