# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Which packages need which, read from BUILD files, Starlark and Python, and their circles.

Tests may need anything: they are left out, with all that is for tests alone. A folder and the
folders below it are one room to those outside: a circle is between folders that lie side by side.
"""

from __future__ import annotations

import ast
import functools
import posixpath
import re
from collections.abc import Container, Iterator, Mapping

_LABEL = re.compile(r"^(?:@aiter_attn)?//([\w/.-]*)(?::.*)?$")
# Arguments and calls that name packages without needing them.
_GRANTS = {"visibility", "default_visibility", "packages"}
_TEST_FILE = re.compile(r"(^|/)(tests/|conftest\.py$)|_test\.(py|bzl)$")


# The packages of which everything is for others.
PUBLIC = {
    "aiter": "the library",
    "kernels": "the build's settings, tables and code objects; defs.bzl",
    "python": "the wheel and its parts",
    "toolchains/llvm": "the C++ toolchain",
    "toolchains/llvm/sanitizers": "its tests' runner",
    "toolchains/python": "the Python toolchain and its settings",
    "toolchains/rocm": "the HIP toolchain",
}

# Packages of a room that those below may need, which is no need of the room: the public
# headers, and a program that runs in actions.
_BELOW = {
    ("kernels", "aiter"),
    ("kernels", "aiter/runtime/rtc"),
}


def read_by_packages(sources: Mapping[str, str]) -> dict[str, str]:
    """Those of the checkout's files that say which package needs which; sources: path -> text."""
    endings = ("/BUILD.bazel", ".bzl", ".py")
    return {path: text for path, text in sources.items() if path.endswith(endings)}


def public_packages(files: Mapping[str, str]) -> list[str]:
    """The packages that everything sees unless a target says otherwise; files as for needs()."""
    return sorted(
        posixpath.dirname(path)
        for path, text in files.items()
        if posixpath.basename(path) == "BUILD.bazel"
        and re.search(r"default_visibility = \[\s*\"//visibility:public\"", text)
    )


def _package(path: str, packages: Container[str]) -> str:
    """The package that a file belongs to: the nearest folder above it with a BUILD file."""
    folder = posixpath.dirname(path)
    while folder and folder not in packages:
        folder = posixpath.dirname(folder)
    return folder


def _is_test(statement: ast.AST) -> bool:
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            name = node.func.id if isinstance(node.func, ast.Name) else name
            testonly = any(
                k.arg == "testonly" and isinstance(k.value, ast.Constant) and k.value.value
                for k in node.keywords
            )
            if testonly or name.endswith(("_test", "_tests", "fuzz_target")):
                return True
    return False


def _labels(node: ast.AST) -> Iterator[str]:
    """The packages of the labels in an expression, without those that may merely see it."""
    if isinstance(node, ast.keyword) and node.arg in _GRANTS:
        return
    text = node.value if isinstance(node, ast.Constant) else None
    if isinstance(text, str) and (match := _LABEL.match(text)):
        yield match[1]
    for child in ast.iter_child_nodes(node):
        yield from _labels(child)


@functools.cache
def _starlark(path: str, text: str) -> frozenset[str]:
    """The packages that a BUILD or .bzl file names; of a BUILD file, for more than tests."""
    found: set[str] = set()
    tree = ast.parse(text)
    is_build = path.endswith(".bazel")
    used = [s for s in tree.body if not (is_build and _is_test(s))]
    loads = {}
    for statement in used:
        call = getattr(statement, "value", None)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "load":
            file, *symbols = call.args
            names = [s.value for s in symbols] + [k.arg for k in call.keywords]
            loads |= {name: list(_labels(file)) for name in names}
        elif not (isinstance(call, ast.Call) and getattr(call.func, "id", "") == "package_group"):
            found.update(_labels(statement))
    names = {
        node.id for statement in used for node in ast.walk(statement) if isinstance(node, ast.Name)
    }
    for name, packages in loads.items():
        if not is_build or name in names:
            found.update(packages)
    return frozenset(found)


@functools.cache
def _modules(text: str) -> frozenset[str]:
    """The full names that a Python file imports: of modules, or of names in them."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.update([node.module, *(f"{node.module}.{alias.name}" for alias in node.names)])
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return frozenset(found)


def _imported(text: str, files: Mapping[str, str]) -> Iterator[str]:
    """The files that a Python file imports."""
    for module in _modules(text):
        stem = module.replace(".", "/")
        yield from (f for f in (f"{stem}.py", f"{stem}/__init__.py") if f in files)


def needs(files: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """(package, a package that it needs) -> a file that says so; files are path -> text."""
    packages = {posixpath.dirname(f) for f in files if posixpath.basename(f) == "BUILD.bazel"}
    found: dict[tuple[str, str], str] = {}
    for path, text in sorted(files.items()):
        if _TEST_FILE.search(path):
            continue
        here = _package(path, packages)
        if path.endswith(".py"):
            needed = {_package(f, packages) for f in _imported(text, files)}
        else:
            needed = _starlark(path, text) & packages
        for there in needed - {here}:
            found.setdefault((here, there), path)
    return found


def _side_by_side(here: str, there: str) -> tuple[str, str] | None:
    """The two folders of one folder that hold these packages; None where one holds the other."""
    above = posixpath.commonpath([here, there]) if here and there else ""
    rooms = [
        posixpath.join(above, posixpath.relpath(p, above or ".").split("/")[0])
        for p in (here, there)
        if p and p != above
    ]
    return (rooms[0], rooms[1]) if len(rooms) == 2 else None


def circles(found: Mapping[tuple[str, str], str]) -> list[str]:
    """A line for each need that is part of a circle of rooms; found is as needs() gives it."""
    rooms: dict[tuple[str, str], str] = {}
    for (here, there), file in sorted(found.items()):
        if (here.split("/")[0], there) in _BELOW:
            continue
        if pair := _side_by_side(here, there):
            rooms.setdefault(pair, f"{pair[0]} -> {pair[1]}: {file} needs //{there}")
    below: dict[str, set[str]] = {}
    for here, there in rooms:
        below.setdefault(here, set()).add(there)

    def reached(room: str) -> set[str]:
        seen: set[str] = set()
        pending = [room]
        while pending:
            for there in below.get(pending.pop(), set()) - seen:
                seen.add(there)
                pending.append(there)
        return seen

    return [line for (here, there), line in rooms.items() if here in reached(there)]
