# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The page of the bench: its plots and their places."""

from __future__ import annotations

import itertools
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.bench.norms.plots import PageError, curves, page, plot, read
from toolchains.pages.tests.chromium import Browser
from toolchains.pages.tests.looking import browser as browser  # a fixture
from toolchains.pages.tests.looking import look


def _row(who: str, operation: str, rows: int, hidden: int, share: float | None) -> dict:
    row = {"who": who, "operation": operation, "rows": rows, "hidden": hidden}
    return row | ({"error": "RuntimeError('<n>')"} if share is None else {"share": share})


ROWS = [
    _row("ours", "rms_forward", 2048, 1024, 0.9),
    _row("ours", "rms_forward", 1024, 2048, 0.8),
    _row("ours", "rms_forward", 512, 2048, 0.4),  # smaller: not in the plot
    _row("copy", "copy", 2048, 1024, 0.97),
    _row("copy", "copy", 1024, 2048, 0.96),
    _row("quack", "rms_forward", 2048, 1024, 0.7),
    _row("quack", "rms_forward", 1024, 2048, None),
    _row("ours", "softmax_forward", 2048, 1024, 1.1),
]


def test_a_curve_has_the_largest_inputs_alone_by_hidden_size() -> None:
    assert curves(reversed(ROWS), "rms_forward") == {
        "quack": [(1024, 0.7)],
        "copy": [(1024, 0.97), (2048, 0.96)],
        "ours": [(1024, 0.9), (2048, 0.8)],
    }


def _parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)  # noqa: S314 (written a line ago)


def _points(svg: str, who_index: int) -> list[tuple[float, float]]:
    lines = _parsed(svg).findall("polyline")
    return [tuple(map(float, p.split(","))) for p in lines[who_index].get("points").split()]


def test_more_bandwidth_is_higher_and_a_doubled_size_one_step_to_the_right() -> None:
    svg = plot("t", {"ours": [(1024, 0.5), (2048, 1.0), (4096, 0.25)]})
    (x0, y0), (x1, y1), (x2, y2) = _points(svg, 0)
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert x1 > x0
    assert y1 < y0 < y2
    grid = {float(t.text): float(t.get("y")) - 4 for t in _labels(svg)}
    assert y0 == pytest.approx((grid[0.4] + grid[0.6]) / 2, abs=0.2)


def _labels(svg: str) -> list[ElementTree.Element]:
    texts = _parsed(svg).findall("text")
    return [t for t in texts if t.get("text-anchor") == "end"]


def test_shares_beyond_1_stay_inside() -> None:
    svg = plot("t", {"ours": [(1024, 1.1), (2048, 1.0)]})
    assert all(y > 0 for _, y in _points(svg, 0))
    assert max(float(t.text) for t in _labels(svg)) >= 1.1


def test_names_do_not_cover_each_other() -> None:
    svg = plot("t", {who: [(1024, 0.9)] for who in ("ours", "quack", "liger")})
    names = [t for t in _parsed(svg).findall("text") if t.get("style")]
    heights = sorted(float(t.get("y")) for t in names)
    assert [b - a >= 11.9 for a, b in itertools.pairwise(heights)] == [True, True]


def test_the_page_has_every_cell_and_a_dash_for_what_failed() -> None:
    text = page(4.25, ROWS)
    assert text.count("<svg") == 2
    assert "4.250 TB/s" in text
    first = text[text.index("<table>") : text.index("</table>")]
    assert re.findall(r"<th>([^<]*)</th>", first) == [
        "rms_forward",
        "2048&times;1024",
        "1024&times;2048",
        "512&times;2048",
    ]
    assert re.findall(r"<td>([^<]*)</td>", first) == [
        *("ours", "0.900", "0.800", "0.400"),
        *("quack", "0.700", "-", "-"),
    ]


def test_nothing_measured() -> None:
    text = page(4.25, [_row("quack", "rms_<forward>", 2, 1024, None)])
    assert "rms &lt;forward&gt;: nothing was measured" in text


@pytest.mark.parametrize("content", ["", "[]", '{"rows": []}', '{"copy_TBps": "x", "rows": []}'])
def test_another_file(tmp_path: Path, content: str) -> None:
    path = tmp_path / "bench.json"
    path.write_text(content)
    with pytest.raises(PageError, match=r"bench\.json: .*give a file that"):
        read(path)


def test_what_the_bench_writes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    path.write_text(json.dumps({"copy_TBps": 4.25, "rows": ROWS}))
    assert read(path) == (4.25, ROWS)


def test_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "norms.html"
    path.write_text(page(4.25, ROWS))
    look(browser, path, plots=2)
