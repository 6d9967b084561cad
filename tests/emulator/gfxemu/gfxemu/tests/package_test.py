# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""gfxemu stands alone: it imports itself, the standard library, and the packages of
pyproject.toml."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import tomllib

import gfxemu

_PACKAGE = Path(gfxemu.__file__).parent
_PROJECT = tomllib.loads(_PACKAGE.with_name("pyproject.toml").read_text("utf-8"))["project"]
# The module of a distribution, where that is not its name.
_MODULES = {"pyelftools": "elftools"}


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield str(node.module)


def _check(files: list[Path], requirements: list[str]) -> None:
    allowed = {_MODULES.get(name, name) for name in requirements} | {"gfxemu"}
    assert files
    for path in files:
        foreign = {name.split(".")[0] for name in _imported(path)} - sys.stdlib_module_names
        assert foreign <= allowed, f"{path.name} imports {foreign - allowed}"


def test_the_package_imports_its_dependencies_alone() -> None:
    _check(list(_PACKAGE.glob("*.py")), _PROJECT["dependencies"])


def test_the_tests_import_theirs() -> None:
    extra = _PROJECT["optional-dependencies"]["test"]
    _check(list((_PACKAGE / "tests").glob("*.py")), _PROJECT["dependencies"] + extra)
