# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Demands on every page of this project, looked at in Chromium."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolchains.pages.tests import chromium
from toolchains.pages.tests.chromium import Browser

# Of each drawing: how many colours it has beside that of most of its points.
_COLOURS = """
[...document.querySelectorAll("canvas")].map(canvas => {
  const of = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const counts = new Map();
  for (let i = 0; i < of.length; i += 4) {
    const colour = of[i + 3] && `${of[i]},${of[i + 1]},${of[i + 2]},${of[i + 3]}`;
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  return [...counts.values()].filter(count => count > 40).length - 1;
})
"""
_MARKS = """
[...document.querySelectorAll("svg")].map(
  svg => svg.querySelectorAll("rect, circle, polyline, path").length)
"""
_BACK = "getComputedStyle(document.body).backgroundColor"
_REACHABLE = """
[...document.querySelectorAll("a[href], button, input, summary, [tabindex='0']")]
  .filter(element => element.checkVisibility()).length
"""
# Marks what has the focus; whether it was new, and whether one can see it.
_FOCUS = """
(() => {
  const element = document.activeElement;
  if (element === document.body) return "none";
  if (element.dataset.reached) return "again";
  element.dataset.reached = "yes";
  const style = getComputedStyle(element);
  return style.outlineStyle === "none" ? "unseen" : "new";
})()
"""
_MOST_STOPS = 60


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium.running(chromium.unpack(tmp_path_factory.mktemp("chromium"))) as started:
        yield started


def look(browser: Browser, page: Path, plots: int) -> None:
    """Opens a page. Raises AssertionError for anything that is wrong with it.

    It says nothing on the console and asks for nothing but itself; each of its plots has something
    in it, in light and dark, which differ; the keyboard gets everywhere, and one sees where it is.
    """
    backs = set()
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        browser.open(page)
        assert not browser.complaints, browser.complaints
        asked = [url for url in browser.requests if not url.startswith("data:")]
        assert asked == [page.absolute().as_uri()], asked
        drawn = browser.evaluate(_COLOURS) + browser.evaluate(_MARKS)
        assert len(drawn) == plots, (scheme, drawn)
        assert all(count >= 1 for count in drawn), (scheme, drawn)
        backs.add(browser.evaluate(_BACK))
        keep(browser, f"{page.stem}.{scheme}.png")
    assert len(backs) == 2, backs
    _walk(browser)
    assert not browser.complaints, browser.complaints


def _walk(browser: Browser) -> None:
    stops = min(browser.evaluate(_REACHABLE), _MOST_STOPS)
    reached = []
    for _ in range(stops):
        browser.press("Tab")
        reached.append(browser.evaluate(_FOCUS))
    assert reached == ["new"] * stops, reached


def keep(browser: Browser, name: str) -> None:
    """Keeps a picture where Bazel keeps what tests leave."""
    folder = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR")
    if folder:
        (Path(folder) / name).write_bytes(browser.screenshot())
