# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Numbers of kernel instances of variant sets, by direction, head size and dtype."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kernels.ck_fmha.ckgen.archs import target_of
from kernels.ck_fmha.ckgen.directions import TARGETS, direction_of
from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.ck_fmha.ckgen.schema import parse_variant_set
from kernels.ck_fmha.ckgen.selection import select_instances
from kernels.launch_table.traits import TABLE
from kernels.qola import manifest
from kernels.variants.values import VariantSetError

Row = Mapping[str, Any]  # of pool.json

UPDATE = "./bazelw run //kernels:matrix -- --golden"

# The project's own sets that are for use. Sets of others come and go.
PUBLISHED_SETS = ("core", "te", "jax", "inference", "standard", "full")

# Those which the golden file has.
GOLDEN_SETS = ("smoke", *PUBLISHED_SETS)


@dataclasses.dataclass(frozen=True, order=True)
class Cell:
    direction: int  # its place among the directions
    head_size_qk: int
    head_size_v: int
    dtype: str

    @property
    def direction_name(self) -> str:
        return list(TABLE.directions)[self.direction]

    @property
    def head_size(self) -> str:
        sizes = dict.fromkeys((self.head_size_qk, self.head_size_v))
        return "x".join(str(size) for size in sizes)


def cell(row: Row) -> Cell:
    direction = list(TABLE.directions).index(direction_of(row["kind"]))
    traits = row["traits"]
    return Cell(direction, traits["head_size_qk"], traits["head_size_v"], traits["dtype"])


def by_cell(rows: Iterable[Row]) -> dict[Cell, list[Row]]:
    """In the order of the directions and head sizes."""
    cells: dict[Cell, list[Row]] = collections.defaultdict(list)
    for row in rows:
        cells[cell(row)].append(row)
    return dict(sorted(cells.items()))


def rows_of_set(pool: RecordedPool, file: Path) -> list[Row]:
    """The instances of a variant set file. Raises VariantSetError."""
    return _rows(pool, file.read_text("utf-8"), f"kernels/variants/{file.name}")


def rows_of_file(pool: RecordedPool, file: Path) -> list[Row]:
    """Those of a file outside of kernels/variants, which may be a manifest of QoLA's. Raises
    VariantSetError, OSError."""
    try:
        text = file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise VariantSetError(f"{file}: not UTF-8: {error}; write it as UTF-8") from None
    if manifest.is_manifest(text):
        text = manifest.read(text, str(file)).variant_set
    return _rows(pool, text, str(file))


def _rows(pool: RecordedPool, text: str, shown: str) -> list[Row]:
    variant_set = parse_variant_set(text, shown, pool.known_values)
    return [pool.rows[name] for name in select_instances(variant_set, pool.candidates)]


def of_target(rows: Iterable[Row], target: str) -> list[Row]:
    """Those that upstream has for the archs of one of TARGETS."""
    return [row for row in rows if target in row["targets"]]


def golden(sets: Mapping[str, Iterable[Row]], archs: Iterable[str]) -> str:
    """The text of the golden file."""
    lines = [
        "# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0",
        "# Kernel instances of the variant sets for one arch, by direction, head size and",
        "# dtype; as many for each arch, but for what kernels/archs leaves out of it. SET@TARGET",
        f"# has those of other archs than {TARGETS[0]}'s.",
        f"# Written by {UPDATE}",
    ]
    for name, rows in sets.items():
        every = list(rows)
        for target in TARGETS:
            listed = of_target(every, target)
            shown = name if target == TARGETS[0] else f"{name}@{target}"
            lines += ["", f"{shown} {len(listed)}"]
            for where, found in by_cell(listed).items():
                words = (shown, where.direction_name, where.head_size, where.dtype, len(found))
                lines.append(" ".join(map(str, words)))
            for arch in (arch for arch in archs if target_of(arch) == target):
                if left := sum(arch in row.get("left_out", {}) for row in listed):
                    lines.append(f"{shown} without for {arch}: {left}")
    return "\n".join(lines) + "\n"
