# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Figures of code objects: as JSON, as columns, and two builds compared."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kernels.archs.archs import ComputeUnit
from kernels.archs.occupancy import waves_per_simd
from kernels.resources.figures import Figures

# Column -> its meaning; README.md has the same.
COLUMNS = {
    "vgpr": "vector registers of a lane, accumulators included",
    "agpr": "accumulators among them",
    "sgpr": "scalar registers of a wave",
    "lds": "bytes of LDS of a workgroup",
    "scratch": "bytes of scratch of a lane, reserved even where nothing accesses them",
    "vgpr_spills": "vector registers that did not fit",
    "sgpr_spills": "scalar registers that did not fit",
    "waves": "waves that fit on a SIMD at once, by registers, LDS and workgroup size",
    "instructions": "instructions of the kernel",
    "loop_scratch": "accesses to scratch in any loop",
    "loop_lanes": "reads and writes of single lanes in any loop: of scalar registers spilt there",
    "early": "uses of a register while a load into it is under way, of gfx9 alone: wrong numbers",
    "loop": "instructions of the main loop: the innermost one with most matrix instructions",
    "waits": "`s_waitcnt`, or `s_wait_*`, among them",
    "nops": "`s_nop` among them",
    "cycles": "of a turn of the main loop; of the kernel where it has no loop",
}
# Columns that a new compiler may change unnoticed. Waits, nops and cycles differ with
# every change of a schedule.
RESOURCES = (
    "vgpr",
    "agpr",
    "sgpr",
    "lds",
    "scratch",
    "vgpr_spills",
    "sgpr_spills",
    "waves",
    "loop_scratch",
    "loop",
)
HEADINGS = {
    "instructions": "insts",
    "loop_lanes": "looplane",
    "loop_scratch": "loopscr",
    "sgpr_spills": "sspill",
    "vgpr_spills": "vspill",
}
# Parts of an instance's name that every instance of a set of the usual traits has alike: the
# folder's name, the tile, how V lies in memory; and traits that it has not.
_SILENT = re.compile(r"fmha|[brw]\d+(x\d+)*|o\d|maxq0|vr|n(?!pad|o$)[a-z]+|nmask")


@dataclasses.dataclass(frozen=True)
class Measured:
    """A code object's figures.

    options  of code generation, that it was compiled with
    kernel   "kernel" of its metadata (kernels/code_object/describe.py)
    """

    instance: str
    arch: str
    options: tuple[str, ...]
    kernel: Mapping[str, int | None]
    figures: Figures

    def serialised(self) -> str:
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> Measured:
        """Of what serialised() has written, or of the description of an object that comes as one.
        Raises ValueError for another text."""
        try:
            document = json.loads(text)
            if "key" in document:
                return cls(
                    document["instance"], document["arch"], (), document["kernel"], Figures()
                )
            return cls(
                **{
                    **document,
                    "options": tuple(document["options"]),
                    "figures": Figures(**document["figures"]),
                }
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"not the figures of a code object: {error}") from error

    def columns(self, units: Mapping[str, ComputeUnit]) -> dict[str, int | None]:
        """All of COLUMNS; units has the archs' limits."""
        kernel = self.kernel
        return {
            "vgpr": kernel["vgpr_count"],
            "agpr": kernel["agpr_count"],
            "sgpr": kernel["sgpr_count"],
            "lds": kernel["lds_size"],
            "scratch": kernel["scratch_size"],
            "vgpr_spills": kernel["vgpr_spill_count"],
            "sgpr_spills": kernel["sgpr_spill_count"],
            "waves": waves_per_simd(kernel, units[self.arch]),
            **dataclasses.asdict(self.figures),
        }


def machine_options(flags: Sequence[str]) -> tuple[str, ...]:
    """The options of code generation among the flags of a compile."""
    return tuple(option for flag, option in itertools.pairwise(flags) if flag == "-mllvm")


def short_name(instance: str) -> str:
    """The parts of an instance's name by which people know it.

    fwd d128 bf16 batch qr async psskddv mask lse
    """
    return " ".join(part for part in instance.split("_") if not _SILENT.fullmatch(part))


def short_names(instances: Iterable[str]) -> dict[str, str]:
    """Instance -> its short name, or its whole one where others would have the same."""
    by_name: dict[str, list[str]] = {}
    for instance in dict.fromkeys(instances):
        by_name.setdefault(short_name(instance), []).append(instance)
    return {
        instance: name if len(alike) == 1 else instance
        for name, alike in by_name.items()
        for instance in alike
    }


def table(rows: Sequence[Sequence[object]]) -> str:
    """Rows of cells, headings first; "-" is an unknown figure. The first column is of text."""
    cells = [["-" if cell is None else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = (
        " ".join([name.ljust(widths[0]), *map(str.rjust, values, widths[1:])])
        for name, *values in cells
    )
    return "".join(line.rstrip() + "\n" for line in lines)


def comparison(
    before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> str:
    """The differences between two builds of one arch, by instance, and a summary.

    Args:
      before: instance -> its columns, and "options": those of code generation.
      after: the same of the other build.
    """
    lines = [
        f"only {when}: {instance}"
        for when, ones, others in (("before", before, after), ("after", after, before))
        for instance in sorted(ones.keys() - others.keys())
    ]
    common = sorted(before.keys() & after.keys())
    names = short_names(common)
    ratios: dict[str, float] = {}
    for instance in common:
        old, new = before[instance], after[instance]
        changes = [
            f"{HEADINGS.get(column, column)} {old[column]} -> {new[column]}"
            for column in COLUMNS
            if old[column] != new[column]
        ]
        if changes:
            options = new["options"] or "the compiler's defaults"
            lines += [f"{names[instance]}: {options}", f"    {', '.join(changes)}"]
        if old["cycles"] and new["cycles"]:
            ratios[instance] = new["cycles"] / old["cycles"]
    lines.append(f"kernels {len(common)}")
    for column in ("vgpr_spills", "sgpr_spills", "loop_scratch"):
        sums = (sum(ones[i][column] or 0 for i in common) for ones in (before, after))
        lines.append(f"{HEADINGS[column]} " + " -> ".join(map(str, sums)))
    if ratios:
        mean = math.exp(math.fsum(map(math.log, ratios.values())) / len(ratios))
        worst = max(ratios, key=lambda instance: ratios[instance])
        lines.append(f"cycles x {mean:.3f}, at worst x {ratios[worst]:.3f}: {names[worst]}")
    return "".join(line + "\n" for line in lines)
