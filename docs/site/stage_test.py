# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Links of documents lead to the site's pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.site.stage import MissingPageError, Pages


def pages(folder: Path, **texts: str) -> dict[str, str]:
    """The site's pages of these files: `docs__a_md` is docs/a.md."""
    files = {}
    for name, text in texts.items():
        path = name.replace("__", "/").replace("_", ".")
        files[path] = folder / path
        files[path].parent.mkdir(parents=True, exist_ok=True)
        files[path].write_text(text, encoding="utf-8")
    return Pages(files).texts


def test_documents_and_folders(tmp_path: Path) -> None:
    made = pages(
        tmp_path,
        docs__a_md="[b](b.md#x) [kernels](../kernels) [top](#x) [`f[1]`](https://example.org/)",
        docs__b_md="[a](a.md)",
        kernels__README_md="[a](../docs/a.md)",
    )
    assert made["docs/a.md"] == (
        "[b](b.md#x) [kernels](../kernels/README.md) [top](#x) [`f[1]`](https://example.org/)"
    )
    assert made["kernels/README.md"] == "[a](../docs/a.md)"


def test_the_start_page_is_at_the_top(tmp_path: Path) -> None:
    made = pages(
        tmp_path,
        docs__site__index_md="[a](../a.md) [all](../../README.md)",
        docs__a_md="[start](site/index.md)",
        README_md="",
    )
    assert made["index.md"] == "[a](docs/a.md) [all](README.md)"
    assert made["docs/a.md"] == "[start](../index.md)"


def test_a_source_file_has_a_page_if_it_is_given(tmp_path: Path) -> None:
    made = pages(
        tmp_path,
        README_md="[attn.h](aiter/attn.h), [`f()`](aiter/other.cc)",
        aiter__attn_h="/* ```` */\n",
    )
    assert made["README.md"] == "[attn.h](source/aiter/attn.h.md), `f()`"
    # The text's own backticks do not end the block.
    assert "\n`````cpp\n/* ```` */\n`````\n" in made["source/aiter/attn.h.md"]


def test_code_is_left_alone(tmp_path: Path) -> None:
    text = "```\n[a](b.md)\n```\n"
    assert pages(tmp_path, a_md=text)["a.md"] == text


def test_a_document_that_is_not_given_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingPageError, match=r"docs/a.md links to b.md#x.*add it to the srcs"):
        pages(tmp_path, docs__a_md="[b](b.md#x)")
