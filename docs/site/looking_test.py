# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The site in a real Chromium, from its files, as a reader opens it: light and dark, its drawing,
and its search."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from toolchains.pages.tests.chromium import Browser
from toolchains.pages.tests.looking import browser as browser  # a fixture
from toolchains.pages.tests.looking import keep

SITE = Path(os.environ["SITE"]).absolute()
_BACK = "getComputedStyle(document.body).backgroundColor"
_TEXT = "getComputedStyle(document.querySelector('article h1')).color"
# The page itself does not scroll sideways: wide tables do.
_IS_WITHIN = "document.documentElement.scrollWidth <= window.innerWidth"
# A text of the drawing has another colour than what is behind it, and keeps off its box's edges.
_UNSEEN = """
[...document.querySelectorAll("svg.drawing text")].filter(text => {
  const within = text.closest("g")?.querySelector("rect"), box = text.getBoundingClientRect();
  const behind = within ? getComputedStyle(within).fill
    : getComputedStyle(document.body).backgroundColor;
  const edge = within?.getBoundingClientRect();
  const fits = !edge || (box.left > edge.left + 4 && box.right < edge.right - 4 &&
    box.top > edge.top && box.bottom < edge.bottom);
  return !(box.width > 0 && fits && getComputedStyle(text).fill !== behind);
}).map(text => text.textContent)
"""
_FOUND = "[...document.querySelectorAll('#search-results li a')].map(link => link.href)"


@pytest.mark.parametrize(
    "page", ["index", "docs/semantics", "docs/reference", "api/aiter_attn/index"]
)
def test_a_page_in_light_and_dark(browser: Browser, page: str) -> None:
    colours = set()
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        browser.open(SITE / f"{page}.html")
        assert not browser.complaints, browser.complaints
        elsewhere = [url for url in browser.requests if not url.startswith(("file:", "data:"))]
        assert not elsewhere
        back, text = browser.evaluate(_BACK), browser.evaluate(_TEXT)
        assert back != text
        assert browser.evaluate(_IS_WITHIN)
        colours.add((back, text))
        keep(browser, f"{page.replace('/', '.')}.{scheme}.png")
    assert len(colours) == 2, colours


def test_the_drawing_of_the_start_page(browser: Browser) -> None:
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        browser.open(SITE / "index.html")
        count = browser.evaluate("document.querySelectorAll('svg.drawing rect').length")
        assert count >= 4
        assert browser.evaluate(_UNSEEN) == [], scheme


@pytest.mark.parametrize(
    ("words", "page"),
    [("varlen_attn", "docs/pytorch"), ("sinks", "docs/semantics")],
)
def test_search_finds(browser: Browser, words: str, page: str) -> None:
    browser.call("Page.navigate", url=f"{(SITE / 'search.html').as_uri()}?q={words}")
    browser.wait_for("Page.loadEventFired")
    deadline = time.monotonic() + 30
    wanted = (SITE / f"{page}.html").as_uri()
    found: list[str] = []
    while not any(link.startswith(wanted) for link in found):
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
        found = browser.evaluate(_FOUND)
