# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The resource report as data: a record for each kernel, chosen, sorted, and the worst of them."""

from __future__ import annotations

import csv
import dataclasses
import io
import operator
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kernels.archs.archs import ComputeUnit
from kernels.launch_table.traits import TABLE
from kernels.matrix.counts import Row
from kernels.resources.measured import COLUMNS, HEADINGS, Measured, short_names, table

Record = Mapping[str, Any]

WORDS = ("instance", "arch", "provider", "direction", "kind")
UNMEASURED = (*WORDS, *TABLE.traits)
ALL = (*UNMEASURED, *COLUMNS, "options", "concerns")
_NUMBERS = (*COLUMNS, *(name for name, trait in TABLE.traits.items() if trait.is_size))

# The concerns, the worst first.
CONCERNS: Mapping[str, Callable[[Record], bool]] = {
    "no workgroup fits": lambda record: record["waves"] == 0,
    "scratch in loops": lambda record: (record["loop_scratch"] or 0) > 0,
    "spills": lambda record: (record["vgpr_spills"] or 0) + (record["sgpr_spills"] or 0) > 0,
    "one wave": lambda record: record["waves"] == 1,
}
MEASURE = (
    "no workgroup fits a compute unit; accesses to scratch in loops; vector registers spilled; "
    "scalar ones; few waves on a SIMD; many cycles"
)

_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
_CONDITION = re.compile(r"(\w*)(<=|>=|!=|=|<|>)(.*)")


class ReportError(Exception):
    """The user asked for a name that there is not."""


def records(
    measured: Iterable[Measured], rows: Mapping[str, Row], units: Mapping[str, ComputeUnit]
) -> list[dict[str, Any]]:
    """A record for each code object, by instance and arch: all of ALL.

    Args:
      measured: the code objects' figures.
      rows: instance -> its row of the launch table.
      units: arch -> its compute unit.
    """
    found = []
    for one in sorted(measured, key=lambda one: (one.instance, one.arch)):
        record = {
            **unmeasured(rows[one.instance], one.arch),
            **one.columns(units),
            "options": " ".join(one.options),
        }
        record["concerns"] = [name for name, holds in CONCERNS.items() if holds(record)]
        found.append(record)
    return found


def unmeasured(row: Row, arch: str) -> dict[str, Any]:
    """The part of a kernel's record that is known before it is compiled: all of UNMEASURED."""
    directions = {kind: name for name, of in TABLE.directions.items() for kind in of["kinds"]}
    return {
        "instance": row["name"],
        "arch": arch,
        "provider": TABLE.provider_of[row["kind"]],
        "direction": directions.get(row["kind"]),
        "kind": row["kind"],
        **{trait: row["traits"].get(trait) for trait in TABLE.traits},
    }


def worst(of: Iterable[Record]) -> list[Record]:
    """Those with a concern, the worst first: MEASURE, each where those before it are equal."""
    return sorted(
        (record for record in of if record["concerns"]),
        key=lambda record: (
            record["waves"] != 0,
            -(record["loop_scratch"] or 0),
            -(record["vgpr_spills"] or 0),
            -(record["sgpr_spills"] or 0),
            record["waves"],
            -(record["cycles"] or 0),
            record["instance"],
        ),
    )


def drawn(rows: Sequence[Row], number: int, seed: int) -> list[Row]:
    """So many of the rows, at random: one of each shape, then another of each, and so on.

    A shape is a direction's kind, dtype and head sizes. Raises ReportError for a number below 1.
    """
    if number < 1:
        raise ReportError(f"--draw={number}: name a number above 0, or leave it out for all")
    chance = random.Random(seed)  # noqa: S311 (the same draw for everybody)
    shapes: dict[tuple[Any, ...], list[Row]] = {}
    for row in sorted(rows, key=lambda row: str(row["name"])):
        traits = row["traits"]
        sizes = (traits.get("head_size_qk"), traits.get("head_size_v"))
        shapes.setdefault((row["kind"], traits.get("dtype"), *sizes), []).append(row)
    queues = [chance.sample(members, len(members)) for members in shapes.values()]
    chance.shuffle(queues)
    turns = [(turn, place, row) for place, q in enumerate(queues) for turn, row in enumerate(q)]
    return [row for _, _, row in sorted(turns, key=lambda entry: entry[:2])][:number]


def known_columns(names: Sequence[str], flag: str) -> list[str]:
    """The names. Raises ReportError for one that is no column, or none."""
    for name in names:
        if name not in ALL:
            raise ReportError(f"--{flag}: unknown column {name!r}; known: {', '.join(ALL)}")
    if not names:
        raise ReportError(f"--{flag}: name at least one column; known: {', '.join(ALL)}")
    return list(names)


@dataclasses.dataclass(frozen=True)
class Condition:
    """COLUMN, one of = != < <= > >=, VALUE."""

    column: str
    operator: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Raises ReportError."""
        match = _CONDITION.fullmatch(text)
        if not match:
            raise ReportError(
                f"--where={text}: write COLUMN, one of {' '.join(_OPERATORS)}, and a value, "
                "like dtype=fp16 or 'vgpr>256'"
            )
        column, comparison, value = match.groups()
        known_columns([column], "where")
        if column in _NUMBERS:
            if not re.fullmatch(r"\d+", value):
                raise ReportError(f"--where={text}: {column} is a number, {value!r} is none")
        elif comparison not in ("=", "!="):
            raise ReportError(f"--where={text}: {column} is no number; compare it with = or !=")
        return cls(column, comparison, value)

    def choose(self, of: Sequence[Record]) -> list[Record]:
        """The records that it holds for. Raises ReportError for a word that no record has."""
        if self.column in _NUMBERS:
            compare, number = _OPERATORS[self.operator], int(self.value)
            return [
                record
                for record in of
                if record[self.column] is not None and compare(record[self.column], number)
            ]
        has = [_words(record[self.column]) for record in of]
        there = sorted({word for words in has for word in words})
        if of and self.value not in there:
            raise ReportError(
                f"--where: no kernel has {self.column} {self.value!r}; there are: "
                f"{', '.join(there) or 'none'}"
            )
        wanted = self.operator == "="
        pairs = zip(of, has, strict=True)
        return [record for record, words in pairs if (self.value in words) == wanted]


def _words(value: object) -> list[str]:
    if value is None:
        return []
    if isinstance(value, list):
        return value
    return [_shown(value)]


def _shown(value: object) -> str:
    """A value in JSON's form, words without quotes."""
    if isinstance(value, bool):
        return str(value).lower()
    return ";".join(value) if isinstance(value, list) else str(value)


def arranged(of: Iterable[Record], by: Sequence[str]) -> list[Record]:
    """Sorted by columns; "-COLUMN" has the greatest first. Unknown figures come last."""
    found = list(of)
    for name in reversed(by):
        column = name.removeprefix("-")
        known = [record for record in found if record[column] is not None]
        others = [record for record in found if record[column] is None]
        known.sort(key=lambda record: record[column], reverse=name.startswith("-"))
        found = known + others
    return found


def as_text(of: Sequence[Record], columns: Sequence[str]) -> str:
    """A table for people, with the kernels' short names."""
    names = short_names(record["instance"] for record in of)
    rows: list[list[object]] = [["", *(HEADINGS.get(column, column) for column in columns)]]
    for record in of:
        cells = (record[column] for column in columns)
        shown = [None if cell is None else _shown(cell) for cell in cells]
        rows.append([names[record["instance"]], *shown])
    return table(rows)


def summary(of: Sequence[Record]) -> str:
    """The number of kernels with each concern, and the measure."""
    counts = ", ".join(
        f"{name} {sum(name in record['concerns'] for record in of)}" for name in CONCERNS
    )
    return f"Of {len(of):,} kernels: {counts}. The worst, by: {MEASURE}."


def worst_as_text(of: Sequence[Record], most: int) -> str:
    """The worst kernels, and the measure."""
    names = short_names(record["instance"] for record in of)
    lines = [
        f"{place:>3}. {names[record['instance']]}: {concerns_as_text(record)}\n"
        for place, record in enumerate(worst(of)[:most], start=1)
    ]
    return "\n".join([summary(of), "".join(lines)])


def concerns_as_text(record: Record) -> str:
    """The concerns of a kernel, with the numbers."""
    numbers = {
        "scratch in loops": f" {record['loop_scratch']}",
        "spills": f" {record['vgpr_spills']} vector, {record['sgpr_spills']} scalar",
    }
    return "; ".join(name + numbers.get(name, "") for name in record["concerns"])


def as_csv(of: Iterable[Record], columns: Sequence[str]) -> str:
    """Headings, then a line for each kernel; an unknown figure is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for record in of:
        cells = (record[column] for column in columns)
        writer.writerow(["" if cell is None else _shown(cell) for cell in cells])
    return out.getvalue()
