# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Pages that load nothing from elsewhere: their frame, their look, tables and plots."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

_HERE = Path(__file__).absolute().parent
Cell = str | int | float | None


def style() -> str:
    """The style sheet of every page."""
    return (_HERE / "style.css").read_text("utf-8")


def script() -> str:
    """The script of every page. It sorts each table of class `sorted` by its headings' buttons."""
    return (_HERE / "page.js").read_text("utf-8")


@dataclasses.dataclass(frozen=True)
class Plot:
    """A plot, and as words what a table below it says of its axes.

    kind     "bar" or "line"
    labels   of the places on the axis
    series   name -> a number for each label, None where there is none
    x, y     what the axes are; a lying bar's numbers are on x
    stacked  bars on top of each other
    lying    bars from left to right
    log      the numbers' axis is logarithmic: all of them are over 0
    """

    title: str
    kind: str
    labels: Sequence[str]
    series: Mapping[str, Sequence[float | None]]
    x: str = ""
    y: str = ""
    stacked: bool = False
    lying: bool = False
    log: bool = False

    def data(self) -> dict[str, Any]:
        """For page.js."""
        series = [{"name": name, "values": list(v)} for name, v in self.series.items()]
        return {**dataclasses.asdict(self), "series": series}


def table(heads: Sequence[str], rows: Sequence[Sequence[Cell]], sorts: bool = True) -> str:
    """A table; numbers stand on the right. With `sorts`, a heading's button sorts by it."""
    numbers = [any(isinstance(row[at], int | float) for row in rows) for at in range(len(heads))]
    classes = [" class=n" if number else "" for number in numbers]
    head = "".join(
        f"<th{kind}>{f'<button>{escape(name)}</button>' if sorts else escape(name)}</th>"
        for name, kind in zip(heads, classes, strict=True)
    )
    body = "".join(f"<tr>{''.join(map(_cell, row, classes))}</tr>" for row in rows)
    kind = " class=sorted" if sorts else ""
    return (
        f"<div class=wide><table{kind}><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(value: Cell, kind: str) -> str:
    if value is None:
        return f"<td{kind}></td>"
    if isinstance(value, str):
        return f"<td{kind}>{escape(value)}</td>"
    text = f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"
    return f'<td{kind} data-value="{value}">{text}</td>'


def plots(of: Sequence[Plot], first: int = 0) -> str:
    """The places of plots, each with its numbers as a table that unfolds."""
    figures = []
    for at, plot in enumerate(of, first):
        rows = [
            [label, *(values[i] for values in plot.series.values())]
            for i, label in enumerate(plot.labels)
        ]
        numbers = table([plot.y if plot.lying else plot.x, *plot.series], rows, sorts=False)
        figures.append(
            f"<figure><figcaption>{escape(plot.title)}</figcaption><div class=canvas>"
            f'<canvas id="plot-{at}" role=img aria-label="{escape(plot.title)}"></canvas></div>'
            f"<details><summary>Numbers</summary>{numbers}</details></figure>"
        )
    return f"<div class=plots>{''.join(figures)}</div>"


def page(title: str, body: str, of: Sequence[Plot] = (), chart_js: Path | None = None) -> str:
    """A whole page.

    Args:
      title: its title and heading.
      body: HTML below the heading; it has the places of all plots.
      of: the plots, by the numbers of their places.
      chart_js: the file of Chart.js; only a page without plots needs none.
    """
    scripts = [script()]
    data = ""
    if of:
        if chart_js is None:
            raise ValueError(f"the page {title!r} has {len(of)} plots: give it Chart.js")
        scripts.insert(0, chart_js.read_text("utf-8"))
        # No text ends the element that it is in.
        text = json.dumps([plot.data() for plot in of]).replace("<", "\\u003c")
        data = f'<script type="application/json" id="plots">{text}</script>'
    code = "".join(f"<script>{script}</script>" for script in scripts)
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style()}</style>\n"
        f"<h1>{escape(title)}</h1>\n{body}\n{data}{code}\n</html>\n"
    )
