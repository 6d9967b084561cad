# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""One HTML page of bench.py's results: bandwidth over hidden size, a plot an operation."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from toolchains.pages import pages

WIDTH, HEIGHT = 560, 320
LEFT, RIGHT, TOP, BOTTOM = 44, 84, 30, 34  # margins of the plot
STEP = 0.2  # between the lines of the grid
# Of toolchains/pages/style.css.
COLOURS = {
    "ours": "var(--plot-2)",
    "torch": "var(--plot-7)",
    "compile": "var(--plot-1)",
    "liger": "var(--plot-3)",
    "quack": "var(--plot-4)",
    "copy": "var(--text)",
}
OTHER = "var(--mild)"
STYLE = """svg{margin:0 1em 1em 0}svg text{font-size:11px;fill:var(--text)}
svg line{stroke:var(--line)}table{margin:1em 0}th,td{text-align:right}
th:first-child,td:first-child{text-align:left}.ours{font-weight:bold}"""


class PageError(ValueError):
    """The file is not one of bench.py's."""


Row = Mapping[str, Any]
Curve = list[tuple[int, float]]  # hidden size and share, by rising hidden size


def read(path: Path) -> tuple[float, list[Row]]:
    """Bandwidth of the large copy in TB/s and the rows. Raises PageError."""
    try:
        data = json.loads(path.read_text())
        return float(data["copy_TBps"]), list(data["rows"])
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise PageError(
            f"{path}: {error!r}; give a file that tests.bench.norms.bench wrote by --out"
        ) from error


def elements(row: Row) -> int:
    return row["rows"] * row["hidden"]


def curves(rows: Iterable[Row], operation: str) -> dict[str, Curve]:
    """Per contender: of inputs of the largest size, so that one plot compares like with like."""
    rows = [r for r in rows if "share" in r]
    largest = max((elements(r) for r in rows), default=0)
    found: dict[str, Curve] = {}
    for r in rows:
        if r["operation"] in (operation, "copy") and elements(r) == largest:
            found.setdefault(r["who"], []).append((r["hidden"], r["share"]))
    return {who: sorted(curve) for who, curve in found.items()}


def plot(title: str, lines: Mapping[str, Curve]) -> str:
    """One SVG."""
    points = [p for curve in lines.values() for p in curve]
    if not points:
        return f"<p>{html.escape(title)}: nothing was measured</p>"
    low, high = (f(math.log2(hidden) for hidden, _ in points) for f in (min, max))
    top = STEP * math.ceil(max(share for _, share in points) / STEP)

    def x(hidden: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log2(hidden) - low) / max(high - low, 1)

    def y(share: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share / top

    parts = [f'<text x="{LEFT}" y="16" font-weight="bold">{html.escape(title)}</text>']
    for i in range(round(top / STEP) + 1):
        at = y(i * STEP)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
            f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{i * STEP:.1f}</text>'
        )
    for hidden in sorted({hidden for hidden, _ in points}):
        parts.append(
            f'<text x="{x(hidden):.1f}" y="{HEIGHT - 14}" text-anchor="middle">{hidden}</text>'
        )
    for who, curve in lines.items():
        path = " ".join(f"{x(hidden):.1f},{y(share):.1f}" for hidden, share in curve)
        width = 3 if who == "ours" else 1.5
        stroke = f'style="stroke: {COLOURS.get(who, OTHER)}" stroke-width="{width}"'
        dashes = ' stroke-dasharray="4 3"' if who == "copy" else ""
        parts.append(f'<polyline fill="none" {stroke}{dashes} points="{path}"/>')
    # Names at the ends of the lines, pushed apart.
    at = -math.inf
    for share, who in sorted(((curve[-1][1], who) for who, curve in lines.items()), reverse=True):
        at = max(at + 12, y(share) + 4)
        hidden = lines[who][-1][0]
        parts.append(
            f'<text x="{x(hidden) + 6:.1f}" y="{at:.1f}" style="fill: {COLOURS.get(who, OTHER)}">'
            f"{html.escape(who)}</text>"
        )
    return f'<svg width="{WIDTH}" height="{HEIGHT}">{"".join(parts)}</svg>'


def table(rows: Iterable[Row], operation: str) -> str:
    """Every shape, those too that the plot leaves out."""
    cells = {
        (r["who"], r["rows"], r["hidden"]): r["share"]
        for r in rows
        if r["operation"] == operation and "share" in r
    }
    shapes = sorted({key[1:] for key in cells}, key=lambda s: (-s[0] * s[1], s[1]))
    head = "".join(f"<th>{m}&times;{n}</th>" for m, n in shapes)
    lines = [f"<tr><th>{html.escape(operation)}</th>{head}</tr>"]
    for who in dict.fromkeys(key[0] for key in cells):
        shares = (cells.get((who, *shape)) for shape in shapes)
        data = "".join("<td>-</td>" if s is None else f"<td>{s:.3f}</td>" for s in shares)
        kind = ' class="ours"' if who == "ours" else ""
        lines.append(f"<tr{kind}><td>{html.escape(who)}</td>{data}</tr>")
    return f"<div class=wide><table>{''.join(lines)}</table></div>"


def page(copy: float, rows: list[Row]) -> str:
    operations = [o for o in dict.fromkeys(r["operation"] for r in rows) if o != "copy"]
    plots = "".join(plot(o.replace("_", " "), curves(rows, o)) for o in operations)
    tables = "".join(table(rows, o) for o in operations)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>Norms and softmax</title><style>{pages.style()}{STYLE}</style></head><body>"
        "<h1>Norms and softmax</h1><p>Bytes that must move over time, over hidden size, as a share"
        f" of a 2 GiB copy's {copy:.3f} TB/s in the same run; dashed: a copy of the input.</p>"
        f"{plots}{tables}</body></html>\n"
    )
