# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Imports from a folder of the checkout that find nothing there, which tests that seldom run would
tell late."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterator, Mapping


def _bound(text: str) -> Iterator[str]:
    """The names that a Python file binds, anywhere in it."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((a.asname or a.name).split(".")[0] for a in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def missing(files: Mapping[str, str]) -> list[str]:
    """A line for each; files: path in the checkout -> text."""
    python = {path: text for path, text in files.items() if path.endswith(".py")}
    folders = {path.split("/")[0] for path in python}
    there = {path.removesuffix(".py") for path in python}
    for path in python:
        while path := posixpath.dirname(path):
            there.add(path)
    bound: dict[str, set[str]] = {}

    def names(stem: str) -> set[str]:
        if stem not in bound:
            text = python.get(f"{stem}.py", python.get(f"{stem}/__init__.py", ""))
            bound[stem] = set(_bound(text))
        return bound[stem]

    found = []
    for path, text in sorted(python.items()):
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.ImportFrom) or node.level or not node.module:
                continue
            stem = node.module.replace(".", "/")
            if stem.split("/")[0] in folders:
                found += [
                    f"{path}: no {a.name} in {node.module}"
                    for a in node.names
                    if f"{stem}/{a.name}" not in there and a.name not in names(stem)
                ]
    return found
