# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Pages: their tables, their plots and their index, as a browser shows them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolchains.pages import index, pages
from toolchains.pages.pages import Plot
from toolchains.pages.tests.chromium import Browser
from toolchains.pages.tests.looking import browser as browser  # a fixture
from toolchains.pages.tests.looking import look

_CHART_JS = Path(os.environ["CHART_JS"])
_PLOTS = [
    Plot("Bars </script>", "bar", ["a", "b"], {"x": [1, 2], "y": [3, None]}, "n", "m", True),
    Plot("Lying", "bar", ["a", "b"], {"s": [3.5, 1]}, "seconds", lying=True),
    Plot("Lines", "line", ["1", "2", "3"], {"x": [1, 4, 2], "y": [0, None, 9]}),
]


def _page(folder: Path, body: str, plots: list[Plot]) -> Path:
    path = folder / "page.html"
    path.write_text(pages.page("Plots & <tables>", body, plots, _CHART_JS), "utf-8")
    return path


def test_a_page_with_plots(browser: Browser, tmp_path: Path) -> None:
    rows: list[list[pages.Cell]] = [["nine", 9, 1.5], ["ten", 1010, None], ["<b>", 2, 0.25]]
    body = pages.plots(_PLOTS) + pages.table(["name", "count", "share"], rows)
    look(browser, _page(tmp_path, body, _PLOTS), plots=3)
    assert browser.evaluate("document.querySelector('h1').textContent") == "Plots & <tables>"
    # The numbers of a plot are a table, too.
    cells = "[...document.querySelector('figure table').tBodies[0].rows].map(r => r.innerText)"
    browser.evaluate("document.querySelector('figure summary').click()")
    assert browser.evaluate(cells) == ["a\t1\t3", "b\t2\t"]


def test_a_heading_sorts_by_numbers_and_back(browser: Browser, tmp_path: Path) -> None:
    body = pages.table(["name", "count"], [["nine", 9], ["ten", 1010], ["two", 2]])
    browser.open(_page(tmp_path, body, []))
    names = "[...document.querySelectorAll('tbody tr')].map(row => row.cells[0].textContent)"
    for _ in range(2):
        browser.press("Tab")
    browser.press("Enter")
    assert browser.evaluate(names) == ["ten", "nine", "two"]
    browser.press("Enter")
    assert browser.evaluate(names) == ["two", "nine", "ten"]


def test_the_looking_finds_what_is_wrong(browser: Browser, tmp_path: Path) -> None:
    wrong = {
        "said": "<script>console.error('no')</script>",
        "threw": "<script>undefinedName()</script>",
        "asked": "<img src='other.png' alt=''>",
        "empty": "<canvas></canvas>",
        "unseen": "<a href='#x' style='outline: none'>x</a>",
    }
    for name, body in wrong.items():
        page = tmp_path / f"{name}.html"
        page.write_text(pages.page(name, body), "utf-8")
        with pytest.raises(AssertionError):
            look(browser, page, plots=int(name == "empty"))


def test_plots_need_their_library() -> None:
    with pytest.raises(ValueError, match=r"'x' has 3 plots: give it Chart\.js"):
        pages.page("x", "", _PLOTS)


def test_the_index_links_what_is_there(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / index.BUILD).write_text("")
    index.write(tmp_path)
    look(browser, tmp_path / "index.html", plots=0)
    links = browser.evaluate("[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))")
    assert links == [index.BUILD]
    text = browser.evaluate("document.body.innerText")
    for _, title, _, command in index.PAGES:
        assert title in text and command in text
