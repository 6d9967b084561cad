# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Plots as SVG elements, to stand inside an HTML page."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

_WIDTH, _HEIGHT = 560, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 24, 34, 46
_TICKS = 6
# Of toolchains/pages/style.css.
_COLOURS = tuple(f"var(--plot-{number})" for number in range(1, 8))


@dataclasses.dataclass(frozen=True)
class Point:
    """series: what its colour says; marked: drawn with a dark edge."""

    x: float
    y: float
    series: str
    title: str
    marked: bool = False


def colours(series: Iterable[str]) -> dict[str, str]:
    """Series -> its colour, by the order of their names."""
    return {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(sorted(set(series)))}


def ticks(greatest: float) -> list[float]:
    """From 0 to the first round number that is not below the greatest, in round steps."""
    step = 10.0 ** math.floor(math.log10(max(greatest, 1) / _TICKS))
    step = next(step * by for by in (1, 2, 5, 10) if step * by * _TICKS >= greatest)
    step = max(step, 1.0)
    return [step * i for i in range(max(math.ceil(greatest / step), 1) + 1)]


def scatter(
    title: str,
    axes: tuple[str, str],
    points: Sequence[Point],
    colour_of: Mapping[str, str],
    guides: Mapping[float, str] | None = None,
) -> str:
    """Points in a plane.

    Args:
      title: above it.
      axes: the names of x and y.
      points: what is drawn.
      colour_of: series -> colour.
      guides: x -> words, of vertical lines.
    """
    horizontal = ticks(max((point.x for point in points), default=1))
    vertical = ticks(max((point.y for point in points), default=1))
    frame = _Frame(horizontal[-1], vertical[-1])
    parts = [frame.axes(axes, horizontal, vertical)]
    for x, words in (guides or {}).items():
        if x <= horizontal[-1]:
            parts.append(frame.guide(x, words))
    for point in points:
        parts.append(
            f'<circle cx="{frame.x(point.x):.1f}" cy="{frame.y(point.y):.1f}" r="4" '
            f'style="fill: {colour_of[point.series]}" fill-opacity="0.55"'
            + (' class="marked"' if point.marked else "")
            + f"><title>{escape(point.title)}</title></circle>"
        )
    return _svg(title, parts)


def bars(
    title: str,
    axes: tuple[str, str],
    counts: Mapping[str, Mapping[str, int]],
    colour_of: Mapping[str, str],
) -> str:
    """Stacked bars.

    Args:
      title: above it.
      axes: the names of x and y.
      counts: bar -> series -> how many.
      colour_of: series -> colour.
    """
    vertical = ticks(max((sum(of.values()) for of in counts.values()), default=1))
    frame = _Frame(len(counts), vertical[-1])
    parts = [frame.axes(axes, [], vertical)]
    for index, (bar, of) in enumerate(counts.items()):
        left, width = frame.x(index + 0.15), frame.x(0.7) - frame.x(0)
        bottom = 0
        for series, number in sorted(of.items()):
            top = bottom + number
            height = frame.y(bottom) - frame.y(top)
            parts.append(
                f'<rect x="{left:.1f}" y="{frame.y(top):.1f}" width="{width:.1f}" '
                f'height="{height:.1f}" style="fill: {colour_of[series]}">'
                f"<title>{escape(f'{bar}: {number} {series}')}</title></rect>"
            )
            bottom = top
        parts.append(_text(left + width / 2, _HEIGHT - _BOTTOM + 16, bar, "middle"))
        if bottom:
            parts.append(_text(left + width / 2, frame.y(bottom) - 4, str(bottom), "middle"))
    return _svg(title, parts)


class _Frame:
    """The plane between the axes, both from 0."""

    def __init__(self, most_x: float, most_y: float):
        self._most_x, self._most_y = most_x, most_y

    def x(self, value: float) -> float:
        return _LEFT + value / self._most_x * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - value / self._most_y * (_HEIGHT - _TOP - _BOTTOM)

    def axes(self, names: tuple[str, str], at_x: Sequence[float], at_y: Sequence[float]) -> str:
        left, right = _LEFT, _WIDTH - _RIGHT
        bottom = _HEIGHT - _BOTTOM
        parts = []
        for value in at_y:
            y = self.y(value)
            parts.append(_line(left, y, right, y, "grid"))
            parts.append(_text(left - 6, y + 4, f"{value:,.0f}", "end"))
        for value in at_x:
            parts.append(_line(self.x(value), bottom, self.x(value), bottom + 4, "axis"))
            parts.append(_text(self.x(value), bottom + 16, f"{value:,.0f}", "middle"))
        parts.append(_line(left, bottom, right, bottom, "axis"))
        parts.append(_text((left + right) / 2, _HEIGHT - 10, names[0], "middle"))
        middle = (_TOP + bottom) / 2
        turned = f' transform="rotate(-90 14 {middle:.1f})"'
        parts.append(_text(14, middle, names[1], "middle", turned))
        return "".join(parts)

    def guide(self, x: float, words: str) -> str:
        line = _line(
            self.x(x), _TOP, self.x(x), _HEIGHT - _BOTTOM, "grid", ' stroke-dasharray="3 3"'
        )
        return line + _text(self.x(x) - 2, _TOP + 9, words, "end")


def _line(x1: float, y1: float, x2: float, y2: float, kind: str, more: str = "") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"{more}/>'


def _text(x: float, y: float, words: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


def _svg(title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f"aria-label={quoteattr(title)}>"
        f'<text class="title" x="4" y="16">{escape(title)}</text>{"".join(parts)}</svg>'
    )
