# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The page is whole, loads nothing, and has every kernel in its tables and plots."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from kernels.archs.archs import read_archs
from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.resources import plots
from kernels.resources.measured import COLUMNS, Measured
from kernels.resources.page import page
from kernels.resources.report import records
from toolchains.pages.tests.chromium import Browser
from toolchains.pages.tests.looking import browser as browser  # a fixture
from toolchains.pages.tests.looking import look

_UNITS = {name: arch.compute_unit for name, arch in read_archs(os.environ["ARCHS"]).items()}
_ROWS = {
    **RecordedPool(Path(os.environ["POOL"]).read_text("utf-8")).rows,
    **{
        row["name"]: row
        for path in os.environ["OWN_ROWS"].split()
        for row in json.loads(Path(path).read_bytes())
    },
}
_HOW = "./bazelw run //kernels:resources -- --where='vgpr<512'"


def _parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)  # noqa: S314 (written a line ago)


@pytest.fixture(scope="module")
def smoke() -> list[dict[str, Any]]:
    """Of the real code objects of smoke, and one of them for another arch, spoilt."""
    listed = Path(os.environ["FIGURES"]).read_text("ascii").split()
    measured = [Measured.parse(Path(name).read_text("ascii")) for name in listed]
    forward = next(one for one in measured if one.instance.startswith("fmha_fwd"))
    spoilt = dataclasses.replace(
        forward,
        arch="gfx950",
        kernel={**forward.kernel, "vgpr_spill_count": 70},
        figures=dataclasses.replace(forward.figures, loop_scratch=9, cycles=None),
    )
    return records([*measured, spoilt], _ROWS, _UNITS)


@pytest.fixture(scope="module")
def text(smoke: list[dict[str, Any]]) -> str:
    return page("Smoke & mirrors", smoke, _UNITS, _HOW)


@pytest.fixture(scope="module")
def tree(text: str) -> ElementTree.Element:
    """It is XML: each element is closed, each name escaped."""
    return _parsed(text.partition("\n")[2])


def _texts(of: ElementTree.Element, path: str) -> list[str]:
    return ["".join(element.itertext()) for element in of.findall(path)]


def test_it_loads_nothing(text: str, tree: ElementTree.Element) -> None:
    assert text.startswith("<!DOCTYPE html>\n<html ")
    for element in tree.iter():
        assert not {"src", "href", "srcset", "action", "data"} & set(element.keys()), element.tag
    assert {"link", "img", "iframe", "object"}.isdisjoint(element.tag for element in tree.iter())
    assert not re.search(
        r"https?:|//\w|@import|url\(|fetch|XMLHttp|import ", text.replace(escape(_HOW), "")
    )


def test_words_are_escaped(tree: ElementTree.Element) -> None:
    assert _texts(tree, "./body/h1") == ["Smoke & mirrors"]
    assert _texts(tree, "./body/p/code") == [_HOW]


def test_each_architecture_has_its_kernels_with_all_columns(
    tree: ElementTree.Element, smoke: list[dict[str, Any]]
) -> None:
    for arch in ("gfx942", "gfx950"):
        (section,) = tree.findall(f"./body/section[@id='{arch}']")
        of = [record for record in smoke if record["arch"] == arch]
        assert _texts(section, "./h2") == [f"{arch}: {len(of)} kernels"]
        rows = section.findall("./table/tbody/tr")
        assert len(rows) == len(of)
        for row, record in zip(rows, of, strict=True):
            name, *cells = row
            assert name.get("title") == record["instance"]
            values = ["-" if record[c] is None else str(record[c]) for c in COLUMNS]
            assert [cell.text for cell in cells] == values
        heads = section.findall("./table/thead/tr/th")
        assert [head.get("title") for head in heads[1:]] == list(COLUMNS.values())


def test_plots_have_every_kernel(tree: ElementTree.Element, smoke: list[dict[str, Any]]) -> None:
    (section,) = tree.findall("./body/section[@id='gfx942']")
    of = [record for record in smoke if record["arch"] == "gfx942"]
    waves, registers, loops, spills = section.findall("./div/svg")
    stacked = [title.text or "" for title in waves.findall("./rect/title")]
    counted = sum(int(re.findall(r": (\d+) ", title)[0]) for title in stacked)
    assert counted == len(of)
    assert len(registers.findall("circle")) == len(spills.findall("circle")) == len(of)
    assert len(loops.findall("circle")) == sum(record["loop"] > 0 for record in of)
    for circle in (*registers.iter("circle"), *loops.iter("circle"), *spills.iter("circle")):
        assert 0 <= float(circle.get("cx", "nan")) <= 560
        assert 0 <= float(circle.get("cy", "nan")) <= 340
        assert circle.findtext("title")
    # The dashed lines are the most registers for 8 to 1 waves.
    guides = [line for line in registers.findall("line") if line.get("stroke-dasharray")]
    vgprs = max(record["vgpr"] for record in of)
    assert len(guides) >= sum(limit <= vgprs for limit in (64, 72, 80, 96, 128, 168, 256, 512))


def test_the_worst_are_named_with_what_is_bad(tree: ElementTree.Element) -> None:
    (spoilt,) = _texts(tree, "./body/section[@id='gfx950']/ol/li")
    assert spoilt.endswith(": scratch in loops 9; spills 70 vector, 0 scalar")
    assert spoilt.startswith("fwd d64 fp16")
    # Backward has a wave on each SIMD alone.
    (alone,) = _texts(tree, "./body/section[@id='gfx942']/ol/li")
    assert alone.endswith(": one wave")


def test_a_kernel_whose_cycles_are_unknown_is_in_no_plot_of_them(tree: ElementTree.Element) -> None:
    (section,) = tree.findall("./body/section[@id='gfx950']")
    assert len(section.findall("./div/svg")[2].findall("circle")) == 0


@pytest.mark.parametrize(
    ("greatest", "found"),
    [(0, [0, 1]), (1, [0, 1]), (6, [0, 1, 2, 3, 4, 5, 6]), (7, [0, 2, 4, 6, 8]), (513, [0, 100])],
)
def test_ticks_are_round_and_reach_the_greatest(greatest: float, found: list[float]) -> None:
    ticks = plots.ticks(greatest)
    assert ticks[: len(found)] == found
    assert ticks[-1] >= greatest
    assert ticks[-1] - ticks[-2] == ticks[1]


def test_no_kernels_make_no_plot_that_fails() -> None:
    assert not list(_parsed(plots.bars("None", ("x", "y"), {}, {})).iter("rect"))
    assert not list(_parsed(plots.scatter("None", ("x", "y"), [], {})).iter("circle"))


def test_in_a_browser(browser: Browser, smoke: list[dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "resources.html"
    whole = [record for record in smoke if record["arch"] == "gfx942"]
    path.write_text(page("Smoke", whole, _UNITS, _HOW), "utf-8")
    look(browser, path, plots=4)
    # The field leaves the rows with all words.
    rows = "[...document.querySelectorAll('tbody tr')].filter(row => !row.hidden).length"
    assert browser.evaluate(rows) == len(whole)
    browser.evaluate(
        "(() => { const field = document.querySelector('input'); field.value = 'fwd d64';"
        " field.dispatchEvent(new Event('input')); })()"
    )
    assert 0 < browser.evaluate(rows) < len(whole)
