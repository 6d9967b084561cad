# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Sentences that do not name their subject, in every kind of file."""

from __future__ import annotations

import pathlib

import pytest

from toolchains.lint import prose

FIRST = '"""A module."""\n'


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("a.py", '"""What it does."""\n', "a.py:1: 'What'"),
        ("a.py", FIRST + "def f():\n    '''It is. How it is made: by f.'''\n", "a.py:3: 'How'"),
        ("a.py", FIRST + "# The parts of a whole, and\n# nobody else.\n", "a.py:3: 'nobody'"),
        ("a.py", FIRST + "# It knows. Whose\n# it is.\n", "a.py:2: 'Whose'"),
        ("a.py", FIRST + "x = 'What it does.'  # What else.\n", "a.py:2: 'What'"),
        ("a.py", FIRST + "x = f(what='What it does')\n", ""),
        ("a.py", FIRST + "# It says what it does, and how.\n", ""),
        ("a.bzl", FIRST + 'x = rule(doc = "Likewise.")\n', "a.bzl:2: 'Likewise'"),
        ("BUILD.bazel", "# The list, as numpy\n# has it.\n", "BUILD.bazel:1: 'as numpy has it'"),
        ("a.cc", '// A. Who\nchar x[] = "// What";\n', "a.cc:1: 'Who'"),
        ("a.h", "/* It is.\n *\n * What it is.\n */\n", "a.h:3: 'What'"),
        ("a.h", "// Copyright X.  SPDX: Apache-2.0\n//\n// What it is.\n", "a.h:3: 'What'"),
        ("a.h", "int a;  // likewise\n", "a.h:1: 'likewise'"),
        ("a.toml", "# Whatever it is.\na = 1\n", "a.toml:1: 'Whatever'"),
        ("a.toml", "a = 'What it is'\n", ""),
        ("a.md", "# What it is\n\nIt is.\n\n    What it prints\n", ""),
        ("a.md", "# A\n\n| a | b |\n|---|---|\n| c | Nobody |\n", "a.md:5: 'Nobody'"),
        ("a.md", "# A\n\n- one\n- What else\n", "a.md:4: 'What'"),
        ("a.sh", "# What it is\n", ""),
        ("kernels/table/a.h", "// What it is\n", "kernels/table/a.h:1: 'What'"),
    ],
)
def test_sentences(tmp_path: pathlib.Path, path: str, text: str, found: str) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    lines = list(prose.findings(tmp_path, [path]))
    assert len(lines) == bool(found), lines
    assert all(found in line for line in lines)


def test_device_code_of_ours_is_left_as_it_is(tmp_path: pathlib.Path) -> None:
    paths = ["kernels/new/a.cpp", "kernels/new/a.h", "kernels/new/launch.cc"]
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("// What it is\n")
    (line,) = prose.findings(tmp_path, paths)
    assert line.startswith("kernels/new/launch.cc:1: 'What'")
