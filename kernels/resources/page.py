# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The resource report as one HTML page, which loads nothing from elsewhere.

It is well-formed XML, too, so that any parser reads it.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from kernels.archs.archs import ComputeUnit
from kernels.resources import plots
from kernels.resources.measured import COLUMNS, HEADINGS, short_names
from kernels.resources.report import Record, concerns_as_text, summary, worst
from toolchains.pages import pages

_MOST_WORST = 20

_STYLE = """
svg { font-size: 11px; margin: 0 1em 1em 0 }
svg text { fill: var(--text) }
svg .title { font-size: 14px; font-weight: bold }
svg .grid { stroke: var(--line) }
svg .axis { stroke: var(--mild) }
svg .marked { stroke: var(--text); stroke-width: 1.5 }
.legend span { margin-right: 1.5em }
.legend i { display: inline-block; width: 10px; height: 10px; margin-right: 4px }
th, td { text-align: right }
th { position: sticky; top: 0; background: var(--soft) }
th:first-child, td:first-child { text-align: left }
tbody tr:nth-child(even) { background: var(--soft) }
tr.bad td:first-child { border-left: 4px solid var(--bad) }
"""

# The field leaves rows that have all words.
_SCRIPT = """
for (const field of document.querySelectorAll("input")) {
  field.addEventListener("input", () => {
    const words = field.value.split(" ");
    const rows = document.getElementById(field.dataset.table).tBodies[0].rows;
    for (const row of rows) row.hidden = !words.every(word => row.textContent.includes(word));
  });
}
"""


def page(title: str, of: Sequence[Record], units: Mapping[str, ComputeUnit], how: str) -> str:
    """The page.

    Args:
      title: its heading.
      of: the kernels.
      units: arch -> its compute unit.
      how: the command that makes it.
    """
    archs = sorted({record["arch"] for record in of})
    sections = [
        _section(arch, [record for record in of if record["arch"] == arch], units[arch])
        for arch in archs
    ]
    columns = "".join(
        f"<dt>{escape(HEADINGS.get(name, name))}</dt><dd>{escape(doc.replace('`', ''))}</dd>"
        for name, doc in COLUMNS.items()
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        f"<title>{escape(title)}</title><style>{pages.style()}{_STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1><p>Made by <code>{escape(how)}</code>. Cycles are an estimate "
        "of llvm-mca for one wave alone; nothing here was measured on a GPU. A point's name "
        "appears under the pointer.</p>"
        f"{''.join(sections)}<h2>Columns</h2><dl>{columns}</dl>"
        f"<script>{pages.script()}{_SCRIPT}</script></body></html>\n"
    )


def _section(arch: str, of: Sequence[Record], unit: ComputeUnit) -> str:
    names = short_names(record["instance"] for record in of)
    colour_of = plots.colours(record["kind"] for record in of)
    legend = "".join(
        f'<span><i style="background: {colour}"></i>{escape(kind)}</span>'
        for kind, colour in colour_of.items()
    )
    return (
        f'<section id="{arch}"><h2>{arch}: {len(of):,} kernels</h2>'
        f'<p class="legend">{legend}</p>'
        f"<div>{''.join(_plots(of, names, unit, colour_of))}</div>"
        f"{_worst(of, names)}{_table(arch, of, names)}</section>"
    )


def _plots(
    of: Sequence[Record],
    names: Mapping[str, str],
    unit: ComputeUnit,
    colour_of: Mapping[str, str],
) -> list[str]:
    def point(record: Record, x: float, y: float, marked: bool) -> plots.Point:
        title = f"{names[record['instance']]}: {x:g}, {y:g}"
        return plots.Point(x, y, record["kind"], title, marked)

    waves: dict[str, collections.Counter[str]] = {
        str(number): collections.Counter() for number in range(unit.waves_per_simd + 1)
    }
    for record in of:
        waves[str(record["waves"])][record["kind"]] += 1
    # The most registers with which so many waves fit.
    limits = {
        max(n for n in range(1, unit.vgprs + 1) if unit.waves_by_vgprs(n) >= number): str(number)
        for number in range(1, unit.waves_per_simd + 1)
    }
    return [
        plots.bars("Waves on a SIMD", ("waves", "kernels"), waves, colour_of),
        plots.scatter(
            "Registers and LDS; dashed: waves by registers",
            ("vector registers of a lane", "LDS of a workgroup, KiB"),
            [point(r, r["vgpr"], r["lds"] / 1024, "spills" in r["concerns"]) for r in of],
            colour_of,
            dict(sorted(limits.items())),
        ),
        plots.scatter(
            "Main loops; edged: scratch in loops",
            ("instructions of a turn", "estimated cycles of a turn"),
            [
                point(r, r["loop"], r["cycles"], "scratch in loops" in r["concerns"])
                for r in of
                if r["loop"] and r["cycles"] is not None
            ],
            colour_of,
        ),
        plots.scatter(
            "Spills and scratch in loops",
            ("registers spilled, vector and scalar", "accesses to scratch in loops"),
            [
                point(r, r["vgpr_spills"] + r["sgpr_spills"], r["loop_scratch"], False)
                for r in of
                if r["loop_scratch"] is not None
            ],
            colour_of,
        ),
    ]


def _worst(of: Sequence[Record], names: Mapping[str, str]) -> str:
    items = "".join(
        f"<li><span title={quoteattr(record['instance'])}>{escape(names[record['instance']])}"
        f"</span>: {escape(concerns_as_text(record))}</li>"
        for record in worst(of)[:_MOST_WORST]
    )
    text = f"<h3>The worst</h3><p>{summary(of)}</p>"
    return text + (f"<ol>{items}</ol>" if items else "")


def _table(arch: str, of: Sequence[Record], names: Mapping[str, str]) -> str:
    heads = "".join(
        f"<th title={quoteattr(doc)}><button>{escape(HEADINGS.get(name, name))}</button></th>"
        for name, doc in COLUMNS.items()
    )
    rows = []
    for record in of:
        bad = ' class="bad"' if {"scratch in loops", "spills"} & set(record["concerns"]) else ""
        cells = "".join(
            "<td>-</td>" if record[name] is None else f"<td>{record[name]}</td>" for name in COLUMNS
        )
        name = f"<td title={quoteattr(record['instance'])}>{escape(names[record['instance']])}</td>"
        rows.append(f"<tr{bad}>{name}{cells}</tr>")
    return (
        f'<h3>All</h3><p><label>Only with: <input data-table="{arch}.kernels"/></label></p>'
        f'<table class="sorted" id="{arch}.kernels"><thead><tr>'
        f"<th><button>kernel</button></th>{heads}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )
