# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The Markdown files of the tree as pages of the site.

Documents link to each other, to folders and to source files by relative paths. A folder's page is
its README.md. A source file that a document links to gets a page of its own, with its text, if it
is given; else the link's text stays alone. The start page is at the top.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path

START = "docs/site/index.md"
_FENCE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!\!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")
_LANGUAGES = {
    ".bazel": "python",
    ".bzl": "python",
    ".h": "cpp",
    ".hpp": "cpp",
    ".json": "json",
    ".py": "python",
    ".sh": "bash",
    ".toml": "toml",
    ".yml": "yaml",
}


class MissingPageError(Exception):
    """A document links to a document that the site is not given."""


def _place(path: str) -> str:
    return "index.md" if path == START else path


class Pages:
    """The pages of the site.

    Attributes:
      texts: path of a page -> its Markdown.
    """

    def __init__(self, files: Mapping[str, Path]) -> None:
        """Makes a page of each document, and of each other file that one links to.

        Args:
          files: path in the tree -> the place of the file.

        Raises:
          MissingPageError: a document's link, and the document that is not among the files.
        """
        self._files = files
        self.texts: dict[str, str] = {}
        for path, file in files.items():
            if path.endswith(".md"):
                self.texts[_place(path)] = self._linked(path, file.read_text(encoding="utf-8"))

    def _linked(self, path: str, text: str) -> str:
        parts = _FENCE.split(text)
        # Those between are code.
        parts[::2] = [_LINK.sub(lambda m: self._link(path, m[1], m[2]), p) for p in parts[::2]]
        return "".join(parts)

    def _link(self, path: str, text: str, target: str) -> str:
        name, mark, anchor = target.partition("#")
        if not name or ":" in name:
            return f"[{text}]({target})"
        page = self._page(posixpath.normpath(posixpath.join(posixpath.dirname(path), name)))
        if page is None and name.endswith(".md"):
            raise MissingPageError(
                f"{path} links to {target}, which the site is not given: "
                "add it to the srcs of //docs:site"
            )
        if page is None:
            return text
        place = posixpath.relpath(page, posixpath.dirname(_place(path)) or ".")
        return f"[{text}]({place}{mark}{anchor})"

    def _page(self, to: str) -> str | None:
        for path in [to, posixpath.join(to, "README.md")]:
            if path in self._files:
                return _place(path) if path.endswith(".md") else self._source_page(path)
        return None

    def _source_page(self, path: str) -> str:
        page = f"source/{path}.md"
        text = self._files[path].read_text(encoding="utf-8")
        fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))])
        language = _LANGUAGES.get(posixpath.splitext(path)[1], "text")
        self.texts[page] = (
            f"---\norphan: true\n---\n\n# {path}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n"
        )
        return page
