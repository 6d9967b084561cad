# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""What was measured of code objects: as JSON, and as tables."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence

from tests.bench.machine_code.figures import Figures

# What a compiler bump may change without anybody's noticing. Waits, nops and cycles differ with
# every change of a schedule.
RESOURCES = ("vgpr", "agpr", "sgpr", "lds", "scratch", "spills", "waves", "loop_scratch", "loop")
_ALL = tuple(field.name for field in dataclasses.fields(Figures))
_HEADINGS = {"loop_scratch": "loopscr", "instructions": "insts"}
# Parts of an instance's name that every instance of a set of the usual traits has alike: the
# folder's name, the tile, how V lies in memory; and traits that it has not.
_SILENT = re.compile(r"fmha|[brw]\d+(x\d+)+|o\d|kr|ktr|vr|n(?!pad)[a-z]+|nmask")


@dataclasses.dataclass(frozen=True)
class Measured:
    """A code object's figures, and the options of code generation that it was compiled with."""

    instance: str
    arch: str
    options: tuple[str, ...]
    figures: Figures

    def serialised(self) -> str:
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> Measured:
        """Raises ValueError for what serialised() has not written."""
        try:
            document = json.loads(text)
            return cls(
                **{
                    **document,
                    "options": tuple(document["options"]),
                    "figures": Figures(**document["figures"]),
                }
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"not the figures of a code object: {error}") from error


def machine_options(flags: Sequence[str]) -> tuple[str, ...]:
    """The options of code generation among the flags of a compile."""
    return tuple(option for flag, option in itertools.pairwise(flags) if flag == "-mllvm")


def short_name(instance: str) -> str:
    """The parts of an instance's name by which people know it.

    fwd d128 bf16 batch qr async psskddv mask lse
    """
    return " ".join(part for part in instance.split("_") if not _SILENT.fullmatch(part))


def table(measured: Iterable[Measured], columns: Sequence[str] = _ALL) -> str:
    """Rows of figures under their headings; "-" is what is not known.

    Raises ValueError where two code objects would have the same name.
    """
    rows = [["", *(_HEADINGS.get(column, column) for column in columns)]]
    names: dict[str, str] = {}
    for one in sorted(measured, key=lambda one: one.instance):
        name = short_name(one.instance)
        if (other := names.setdefault(name, one.instance)) != one.instance:
            raise ValueError(f"{other} and {one.instance} are both {name!r}")
        values = (getattr(one.figures, column) for column in columns)
        rows.append([name, *("-" if value is None else str(value) for value in values)])
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = (
        " ".join([name.ljust(widths[0]), *map(str.rjust, values, widths[1:])])
        for name, *values in rows
    )
    return "".join(line.rstrip() + "\n" for line in lines)


def comparison(before: Mapping[str, Measured], after: Mapping[str, Measured]) -> str:
    """What differs between two builds of one architecture, by instance, and a summary.

    Args:
      before: instance -> figures.
      after: likewise.
    """
    lines = [
        f"only {when}: {instance}"
        for when, ones, others in (("before", before, after), ("after", after, before))
        for instance in sorted(ones.keys() - others.keys())
    ]
    common = sorted(before.keys() & after.keys())
    ratios: dict[str, float] = {}
    for instance in common:
        old, new = before[instance].figures, after[instance].figures
        changes = [
            f"{_HEADINGS.get(name, name)} {getattr(old, name)} -> {getattr(new, name)}"
            for name in _ALL
            if getattr(old, name) != getattr(new, name)
        ]
        if changes:
            options = " ".join(after[instance].options) or "the compiler's defaults"
            lines += [f"{short_name(instance)}: {options}", f"    {', '.join(changes)}"]
        if old.cycles and new.cycles:
            ratios[instance] = new.cycles / old.cycles
    lines.append(f"kernels {len(common)}")
    for name in ("spills", "loop_scratch"):
        sums = (sum(getattr(ones[i].figures, name) for i in common) for ones in (before, after))
        lines.append(f"{_HEADINGS.get(name, name)} " + " -> ".join(map(str, sums)))
    if ratios:
        mean = math.exp(math.fsum(map(math.log, ratios.values())) / len(ratios))
        worst = max(ratios, key=lambda instance: ratios[instance])
        lines.append(f"cycles x {mean:.3f}, at worst x {ratios[worst]:.3f}: {short_name(worst)}")
    return "".join(line + "\n" for line in lines)
