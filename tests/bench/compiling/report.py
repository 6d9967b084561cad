# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Measurements as text."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from tests.bench.compiling.runner import Usage


@dataclasses.dataclass(frozen=True)
class Measured:
    """One group, compiled once in each way."""

    size: int
    peers: Usage
    ours: Usage

    @property
    def ratio(self) -> float:
        return self.peers.cpu / self.ours.cpu


@dataclasses.dataclass(frozen=True)
class Ratio:
    """Of all processor time of many groups; and the least and the greatest of one group's."""

    ratio: float
    least: float
    greatest: float


def ratio_of(measured: Sequence[Measured]) -> Ratio:
    peers = sum(m.peers.cpu for m in measured)
    ratios = [m.ratio for m in measured]
    return Ratio(peers / sum(m.ours.cpu for m in measured), min(ratios), max(ratios))


def class_name(size: int) -> str:
    return "alone" if size == 1 else f"groups of {size}"


def line(name: str, measured: Sequence[Measured], repeat: int) -> str:
    """One row of the table: sums of a build of everything once, peaks of memory."""
    of = ratio_of(measured)

    def once(get: Callable[[Measured], float]) -> float:
        return sum(get(m) for m in measured) / repeat

    def columns(get: Callable[[Measured], Usage]) -> str:
        return (
            f"{once(lambda m: get(m).cpu):>9.1f} {once(lambda m: get(m).wall):>9.1f} "
            f"{max(get(m).memory for m in measured) / 1e9:>6.2f} "
            f"{once(lambda m: get(m).size):>11,.0f}"
        )

    objects = sum(m.size for m in measured) // repeat
    return (
        f"{name:<14} {objects:>7} |{columns(lambda m: m.peers)} |{columns(lambda m: m.ours)} | "
        f"{of.ratio:>5.2f} {of.least:>5.2f} {of.greatest:>5.2f}"
    )


HEADER = (
    f"{'':<14} {'':>7} |{'peers':>38} |{'ours':>38} | {'ratio of CPU s':>17}\n"
    f"{'':<14} {'objects':>7} |"
    + f"{'CPU s':>9} {'wall s':>9} {'GB':>6} {'bytes':>11} |" * 2
    + f" {'all':>5} {'least':>5} {'most':>5}"
)


def table(measured: Sequence[Measured], repeat: int) -> str:
    """The rows of all sizes, and of all groups; with the ratio on a line of its own."""
    sizes = sorted({m.size for m in measured}, reverse=True)
    rows = [HEADER]
    for size in sizes:
        rows.append(line(class_name(size), [m for m in measured if m.size == size], repeat))
    if len(sizes) > 2 and sizes[-1] == 1:
        rows.append(line("all groups", [m for m in measured if m.size > 1], repeat))
    rows.append(line("overall", measured, repeat))
    overall = ratio_of(measured)
    return "\n".join(
        [
            *rows,
            "",
            f"ratio {overall.ratio:.1f}",
            f"spread {overall.least:.1f} to {overall.greatest:.1f}",
        ]
    )
