# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The site as it is built: every local link leads to a page and a place of it."""

from __future__ import annotations

import os
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

SITE = Path(os.environ["SITE"])


class _Page(HTMLParser):
    """The places and the links of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.places.add(value)
            if name in ("href", "src") and value:
                self.links.append(value)


PAGES = {file.resolve(): _Page(file) for file in sorted(SITE.rglob("*.html"))}


def test_links_lead_somewhere() -> None:
    broken = []
    for file, page in PAGES.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            to = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            known = PAGES[to].places if to in PAGES else set()
            if not to.is_file() or (parts.fragment and unquote(parts.fragment) not in known):
                broken.append(f"{file.relative_to(SITE.resolve())}: {link}")
    assert not broken


def test_readers_pages_are_linked_from_the_start_page() -> None:
    start = PAGES[(SITE / "index.html").resolve()]
    readers = "pytorch jax compat consumers on-demand caching releasing hardware architecture"
    for page in [f"docs/{name}.html" for name in readers.split()] + ["CONTRIBUTING.html"]:
        assert page in start.links


def test_public_functions_have_entries() -> None:
    (entries,) = [page for file, page in PAGES.items() if file.match("api/aiter_attn/index.html")]
    for name in ["flash_attn_func", "mha_bwd", "flash_attn_with_kvcache", "rms_norm", "explain"]:
        assert f"aiter_attn.{name}" in entries.places


def test_nothing_is_fetched_from_elsewhere() -> None:
    """The pages are whole without a network: no script, style or picture of another host."""
    for page in PAGES.values():
        for link in page.links:
            assert not link.endswith((".js", ".css", ".png")) or "//" not in link
