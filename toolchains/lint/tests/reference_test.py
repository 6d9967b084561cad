# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Names that docs/reference.md must have, as they are read from a tree."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest

from toolchains.lint import reference

Tree = Callable[[dict[str, str]], list[str]]


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> Tree:
    """Writes files (path -> text) below tmp_path; returns their paths."""

    def write(files: dict[str, str]) -> list[str]:
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text, encoding="utf-8")
        return sorted(files)

    return write


@pytest.mark.parametrize(
    ("path", "text", "kind", "name"),
    [
        ("a/BUILD.bazel", 'x_flag(name = "b")\n', "settings", "--//a:b"),
        ("a/BUILD.bazel", 'fuzz_target(name = "b")\n', "fuzz", "//a:b"),
        ("a/x.cc", 'get("AITER_ATTN_X");\n', "variables", "AITER_ATTN_X"),
        ("toolchains/x.py", 'V = "BAZELW_Y"\n', "variables", "BAZELW_Y"),
        ("python/aiter_attn/cli/x.py", 'add_parser(\n    "walk")\n', "commands", "walk"),
        ("docs/x.md", "`./bazelw run --config=cache //a:b -- --c`\n", "targets", "//a:b"),
        ("aiter/norm.h", "ATTN_API attn_status attn_f(\n    int x);\n", "c", "attn_f"),
    ],
)
def test_name_is_found(
    tree: Tree, tmp_path: pathlib.Path, path: str, text: str, kind: str, name: str
) -> None:
    found = reference.names(tmp_path, tree({path: text}))
    assert {k: v for k, v in found.items() if v} == {kind: {name}}


def test_names_of_tests_are_none(tree: Tree, tmp_path: pathlib.Path) -> None:
    files = {"a/tests/x.py": 'V = "AITER_ATTN_X"\n', "a/x_test.cc": 'get("AITER_ATTN_Y");\n'}
    assert not any(reference.names(tmp_path, tree(files)).values())


def test_differences_go_both_ways() -> None:
    assert reference.differences({"c": {"f"}}, {"c": {"g": "a line"}, "d": {}}) == [
        "docs/reference.toml: [c] has no line for f",
        "docs/reference.toml: [c] g: there is no such name",
        "docs/reference.toml: [d]: there is no such kind",
    ]


def test_python_functions_follow_imports(tree: Tree, tmp_path: pathlib.Path) -> None:
    files = tree(
        {
            "python/aiter_attn/__init__.py": "from aiter_attn._a import f\n__all__ = ['f']\n",
            "python/aiter_attn/_a.py": 'def f():\n    """Adds two\n    numbers. And more."""\n',
        }
    )
    page = reference.page(tmp_path, files, {})
    assert "### `aiter_attn`\n\n| name | is |\n|---|---|\n| `f` | Adds two numbers. |\n" in page
    assert page.count("###") == 1
