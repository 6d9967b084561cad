# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The floors of the Python package, and the floors that each may import, at load or later. On a
floor, files import each other in no circle."""

from __future__ import annotations

import ast
import functools
import posixpath
from collections.abc import Iterator, Mapping

PACKAGE = "python/aiter_attn/"
# The file that chooses the front.
_FRONTS = PACKAGE + "_functions/fronts.py"

# A folder or a file of the package -> those that it may import, beside itself. _C is the extension
# module, __init__ the package.
FLOORS: dict[str, set[str]] = {
    # The core knows arrays, and no front.
    "_core": {"_C"},
    # The fronts know the core, and not each other.
    "torch": {"_C", "_core"},
    "jax": {"_C", "_core"},
    # The public functions choose a front.
    "_functions": {"_C", "_core", "torch", "jax"},  # _FRONTS alone the fronts
    "_missing": set(),
    "__init__": {"_C", "_core", "_functions", "_missing"},
    # Modules on the public functions, or on one front.
    "flax": {"_core", "jax"},
    "compat": {"__init__", "_core", "jax", "torch"},
    "transformers": {"__init__", "_core"},
    "diffusers": {"_core", "torch"},
    "_versions": {"_core"},
    "vllm": {"__init__", "_core", "_versions"},
    "sglang": {"__init__", "_core", "_versions"},
    "_cli": {"__init__", "_C", "_core", "torch", "jax"},
    "__main__": {"_cli"},
}


def package(files: Mapping[str, str]) -> dict[str, str]:
    """Those of the checkout's files that the package is made of; files are path -> text."""
    return {
        path: text
        for path, text in files.items()
        if path.startswith(PACKAGE) and path.endswith((".py", ".pyi"))
    }


def _floor(path: str) -> str:
    return path.removeprefix(PACKAGE).partition("/")[0].partition(".")[0]


_parsed = functools.cache(ast.parse)


def _imported(path: str, text: str, files: Mapping[str, str]) -> Iterator[str]:
    """The files of the package that a file imports."""
    here = posixpath.dirname(path)
    for node in ast.walk(_parsed(text)):
        names = []
        if isinstance(node, ast.Import):
            names = ["python/" + alias.name.replace(".", "/") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "python"
            if node.level:
                base = posixpath.normpath(posixpath.join(here, *[".."] * (node.level - 1)))
            base = posixpath.join(base, *(node.module or "").split("."))
            names = [posixpath.join(base, alias.name) for alias in node.names]
            # A name of a module is no file: it is the module that is imported.
            names = [
                name if any(file in files for file in _files_of(name)) else base.rstrip("/")
                for name in names
            ]
        for name in names:
            yield from (file for file in _files_of(name) if file in files)


def _files_of(name: str) -> tuple[str, ...]:
    return (f"{name}.py", f"{name}.pyi", f"{name}/__init__.py")


def violations(files: Mapping[str, str]) -> list[str]:
    """The violations in the package's files, one line each; none where the floors hold."""
    found = []
    floors = {path: _floor(path) for path in files}
    for path, text in sorted(files.items()):
        floor = floors[path]
        if floor == "_C":
            continue
        if floor not in FLOORS:
            found.append(f"{path} is on no floor: add it to FLOORS in tests/layers/floors.py")
            continue
        below = {floor, *FLOORS[floor]}
        if floor == "_functions" and path != _FRONTS:
            below -= {"torch", "jax"}
        for other in sorted(set(_imported(path, text, files))):
            if floors[other] not in below:
                found.append(f"{path} -> {other}: {floor} may not import {floors[other]}")
    unused = FLOORS.keys() - set(floors.values())
    return found + [f"FLOORS: no file is on {floor}" for floor in sorted(unused)] + circles(files)


def circles(files: Mapping[str, str]) -> list[str]:
    """A line for each circle of files."""
    direct = {path: sorted(set(_imported(path, text, files))) for path, text in files.items()}
    done: set[str] = set()

    def walk(path: str, way: list[str]) -> Iterator[str]:
        if path in way:
            yield "a circle: " + " -> ".join([*way[way.index(path) :], path])
        elif path not in done:
            for other in direct[path]:
                yield from walk(other, [*way, path])
            done.add(path)

    return [line for path in sorted(direct) for line in walk(path, [])]
