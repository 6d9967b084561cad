# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The program that repository rules fetch locked files with; fetch.bzl runs it.

    fetch.py MODULE FOLDER ARGUMENT...
        puts the files that MODULE.fetched(ARGUMENT...) gives into FOLDER and prints a JSON list of
        them: what the module says of each, sha256, and file, the place below FOLDER
    fetch.py identity NAME=DIGEST...
        prints one digest that stands for all; their order does not matter

Warnings and errors go to stderr, the latter with exit status 1.
"""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import sys

if sys.version_info < (3, 10):  # noqa: UP036  (an older one ends here)
    sys.exit(f"python3 on PATH is {sys.version.split()[0]}; 3.10 or newer is needed")
sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent.parent.parent))

from toolchains.locks import store
from toolchains.locks.errors import LocksError, explained
from toolchains.locks.identity import identity


def _place(fetched: store.Fetched, folder: str) -> dict[str, str]:
    target = pathlib.Path(folder, fetched.file.sha256 + fetched.suffix)
    target.parent.mkdir(parents=True, exist_ok=True)
    store.Store(os.environ).place(fetched.file, target)
    return {**fetched.about, "sha256": fetched.file.sha256, "file": str(target)}


def _run(module: str, *arguments: str) -> str:
    if module == "identity":
        return identity([a.split("=") for a in arguments])
    folder, *rest = arguments
    registry = importlib.import_module(module)
    return json.dumps([_place(fetched, folder) for fetched in registry.fetched(*rest)])


def main() -> None:
    try:
        with explained("fetch what is locked"):
            print(_run(*sys.argv[1:]))
    except LocksError as e:
        sys.exit(str(e))


if __name__ == "__main__":
    main()
