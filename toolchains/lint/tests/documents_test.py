# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Links, labels and file names of Markdown files that lead nowhere."""

from __future__ import annotations

import pathlib

import pytest

from toolchains.lint import documents

GOOD = {
    "a/BUILD.bazel": "",
    "a/c.cc": "",
    "README.md": "# Two `words`, and more\n\n```\n# not a heading\n[x](y)\n```\n",
    "docs/b.md": "[x](../README.md#two-words-and-more) [y](https://example.org) `//a:b` //a/...\n",
}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", ""),
        ("[x](gone.md)", "docs/c.md: gone.md: there is no docs/gone.md"),
        ("[x](b.md#gone)", "docs/c.md: b.md#gone: docs/b.md has no such heading"),
        ("[x](../README.md#not-a-heading)", "README.md has no such heading"),
        ("`./bazelw test //a/gone:all`", "docs/c.md: //a/gone: there is no such package"),
        ("`@other//gone:all` and https://gone", ""),
        ("`c.cc`, `a/c.cc`, `../a/c.cc`, `c.*`, `NAME.toml`, `jax_aiter/mha.py`", ""),
        ("`gone.py`", "docs/c.md: gone.py: there is no such file"),
        ("`b/c.cc`", "docs/c.md: b/c.cc: there is no such file"),
        ("    a/\n      c.*, gone.h    two files", "docs/c.md: gone.h: there is no such file"),
    ],
)
def test_what_leads_nowhere_is_found(tmp_path: pathlib.Path, text: str, why: str) -> None:
    files = GOOD | {"docs/c.md": text + "\n"}
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content, encoding="utf-8")
    found = list(documents.findings(tmp_path, sorted(files)))
    assert len(found) == bool(why)
    assert all(why in line for line in found)
