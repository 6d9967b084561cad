# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""An estimate of kernels' compile time, in seconds of processor time.

A group is compiled as a whole: its costliest member as if alone, and each other one as a sibling.
Where that costs more than the members that are wanted do alone, these are compiled alone. The
figures, and where they are from, are in compile_cost.toml.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any

import tomllib

Row = Mapping[str, Any]  # of pool.json

FIGURES = Path(__file__).with_name("compile_cost.toml")


@dataclasses.dataclass(frozen=True)
class _Kind:
    alone: float
    sibling: float
    head_sizes: Mapping[int, float]  # ascending: greatest head size -> factor

    def factor(self, row: Row) -> float:
        size = max(row["traits"]["head_size_qk"], row["traits"]["head_size_v"])
        return next(factor for most, factor in self.head_sizes.items() if size <= most)


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Of some kernels for one arch.

    seconds  with these groups
    alone    if each were compiled by itself
    grouped  how many of them are compiled with their groups
    groups   how many groups these are
    others   how many more kernels these groups have
    """

    seconds: float
    alone: float
    grouped: int
    groups: int
    others: int


class CostModel:
    """text is that of compile_cost.toml; rows has all instances by name."""

    def __init__(self, text: str, rows: Mapping[str, Row]):
        self._rows = rows
        figures = tomllib.loads(text)
        self.seconds_of_object = float(figures.pop("object"))
        self._kinds = {
            kind: _Kind(
                entry["alone"],
                entry["sibling"],
                dict(sorted((int(size), by) for size, by in entry["head_sizes"].items())),
            )
            for kind, entry in figures.items()
        }

    def alone(self, row: Row) -> float:
        kind = self._kinds[row["kind"]]
        return kind.alone * kind.factor(row) + self.seconds_of_object

    def alone_by_head_size(self) -> dict[str, dict[int, float]]:
        """Kind -> greatest head size, ascending -> the seconds of alone()."""
        return {
            name: {
                size: kind.alone * by + self.seconds_of_object
                for size, by in kind.head_sizes.items()
            }
            for name, kind in self._kinds.items()
        }

    def _sibling(self, row: Row) -> float:
        kind = self._kinds[row["kind"]]
        return kind.sibling * kind.factor(row)

    def compile_of_group(self, rows: Iterable[Row]) -> float:
        """The compile of a group, without its code objects' machine code."""
        first, *others = sorted(rows, key=self.alone, reverse=True)
        return self.alone(first) - self.seconds_of_object + sum(map(self._sibling, others))

    def grouped(
        self, wanted: Container[str], groups: Iterable[Iterable[str]]
    ) -> list[tuple[set[str], set[str]]]:
        """The groups that are compiled as a whole for the wanted instances: (the wanted ones, all).

        groups  of members, "package:instance"
        """
        found = []
        for group in groups:
            members = {member.partition(":")[2] for member in group}
            of_these = {name for name in members if name in wanted}
            alone = sum(self.alone(self._rows[name]) - self.seconds_of_object for name in of_these)
            if of_these and self.compile_of_group(self._rows[name] for name in members) < alone:
                found.append((of_these, members))
        return found

    def estimate(self, wanted: Iterable[str], groups: Iterable[Iterable[str]]) -> Estimate:
        """Of the wanted instances; members of compile groups are "package:instance"."""
        names = set(wanted)
        used = self.grouped(names, groups)
        inside = set().union(*(of_these for of_these, _ in used))
        alone = {name: self.alone(self._rows[name]) for name in names}
        return Estimate(
            seconds=sum(alone[name] for name in names - inside)
            + sum(
                self.compile_of_group(self._rows[name] for name in members) for _, members in used
            )
            + self.seconds_of_object * len(inside),
            alone=sum(alone.values()),
            grouped=len(inside),
            groups=len(used),
            others=sum(len(members) - len(of_these) for of_these, members in used),
        )
