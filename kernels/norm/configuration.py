# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Launch configurations of the norm and softmax kernels: the table. The library chooses from it
(aiter/norm/configure.cc)."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import tomllib

TABLE = Path(__file__).parent / "configurations.toml"
OPERATIONS = tuple(
    f"{name}_{direction}"
    for direction in ("forward", "backward")
    for name in ("rms", "layer", "softmax")
)
REGISTER_ELEMENTS = 64  # of a row, that a thread keeps at most; rows.h: RESIDENT
WEIGHTS_IN_SHARED_MEMORY = 3  # of keep_weights


class TableError(ValueError):
    """The table names something that does not exist, or a configuration that cannot run."""


@dataclasses.dataclass(frozen=True)
class Configuration:
    """The division of rows by a kernel; README.md explains the fields."""

    threads: int
    lanes: int
    cluster: int
    stages: int
    ctas_per_sm: int
    waves: int
    keep_weights: int
    hold_row: int
    lag: int
    on_demand: int
    # Not of the table:
    few_rows: int = 0
    split: int = 0

    def packs(self, hidden: int, vector: int) -> int:
        """Vectors of a row that each thread has."""
        return -(-hidden // (self.cluster * self.lanes * vector))

    def resident(self, hidden: int, vector: int) -> bool:
        """Whether registers can hold a row."""
        return self.packs(hidden, vector) * vector <= REGISTER_ELEMENTS

    def ring_bytes(self, hidden: int, vector: int, element_bytes: int, beyond: int = 0) -> int:
        """Shared memory of a CTA's ring; `element_bytes` adds up over the matrices read; `beyond`:
        a slot's columns that are not the warp's own."""
        slot_columns = self.packs(hidden, vector) * min(self.lanes, 32) * vector + beyond
        return self.stages * (self.threads // 32) * slot_columns * element_bytes

    def weights_bytes(self, hidden: int, vector: int, weight_bytes: int) -> int:
        """Shared memory in which norm_forward keeps gamma and beta, behind the ring;
        `weight_bytes`: of a column of both."""
        if self.keep_weights != WEIGHTS_IN_SHARED_MEMORY:
            return 0
        return (self.threads * self.packs(hidden, vector) + 2) * vector * weight_bytes

    def combine_bytes(self, hidden: int, vector: int, sums: int) -> int:
        """Shared memory in which norm_backward adds the rows of a CTA up, in the ring's place;
        `sums`: 1 for dgamma, 2 for dgamma and dbeta."""
        if self.few_rows or self.split or self.threads == self.lanes:
            return 0
        return self.threads * self.packs(hidden, vector) * vector * 4 * sums

    def macros(self, hidden: int, vector: int) -> dict[str, int]:
        """The macros of rows.h."""
        return {
            "ROW_HIDDEN": hidden,
            "ROW_THREADS": self.threads,
            "ROW_LANES": self.lanes,
            "ROW_CLUSTER": self.cluster,
            "ROW_VECTOR": vector,
            "ROW_STAGES": self.stages,
            "ROW_CTAS_PER_SM": self.ctas_per_sm,
            "ROW_HOLD": self.hold_row,
            "ROW_ON_DEMAND": self.on_demand,
            "ROW_SHIFTED": int(hidden % vector > 0),
        }

    def check(self) -> None:
        """Raises TableError for a configuration that rows.h would refuse."""
        rules = {
            "lanes is a power of two or a multiple of 32": self.lanes > 0
            and (self.lanes % 32 == 0 or self.lanes & (self.lanes - 1) == 0),
            "threads is a multiple of lanes and of 32": self.threads % max(self.lanes, 32) == 0,
            "threads <= 1024": self.threads <= 1024,
            "cluster is 1, 2, 4, 8 or 16": self.cluster in (1, 2, 4, 8, 16),
            "a cluster has one row in hand": self.cluster == 1 or self.threads == self.lanes,
            "at most 15 rows of several warps": self.lanes <= 32
            or self.threads // self.lanes <= 15,
            "a ring feeds whole warps": self.stages == 0 or self.lanes >= 32,
            "stages <= 32": 0 <= self.stages <= 32,
            "keep_weights is 0, 1, 2 or 3": 0 <= self.keep_weights <= 3,
            "a cluster that asks for rows stays, with one row of several slices in hand": (
                not self.on_demand
                or (
                    self.waves == 1
                    and self.threads == self.lanes
                    and self.lanes * self.cluster > 32
                )
            ),
            "lag needs several slices and a held row": not self.lag
            or (self.hold_row and self.lanes * self.cluster > 32),
        }
        for rule, holds in rules.items():
            if not holds:
                raise TableError(f"{self}: {rule}")


@dataclasses.dataclass(frozen=True)
class Entry:
    """The tuned rows of one operation, by rising hidden size, and the configuration beyond them."""

    tuned: tuple[tuple[int, Configuration], ...]
    general: Configuration


@dataclasses.dataclass(frozen=True)
class Split:
    """The division among workgroups of rows that norm_long.cpp takes; the table explains the
    fields."""

    slice: int
    batch: int
    most_parts: int
    enough_workgroups: int

    def slices(self, hidden: int) -> int:
        """Of a row of `hidden` columns."""
        return -(-hidden // self.slice)

    def parts(self, rows: int, hidden: int) -> tuple[int, int]:
        """Parts of the sums over the rows, and rows of a part."""
        most = min(max(1, self.enough_workgroups // self.slices(hidden)), self.most_parts)
        each = -(-rows // min(-(-rows // self.batch), most))
        return -(-rows // each), each


def load_split(path: Path = TABLE) -> Split:
    """Raises TableError."""
    data = tomllib.loads(path.read_text()).get("split")
    names = [f.name for f in dataclasses.fields(Split)]
    if not isinstance(data, dict) or sorted(data) != sorted(names):
        raise TableError(f"{path.name}: split must have {', '.join(names)}")
    for name, number in data.items():
        if type(number) is not int or number < 1:
            raise TableError(f"{path.name}: split: {name} = {number!r}: want a whole number from 1")
    return Split(**data)


def load(path: Path = TABLE) -> dict[str, Entry]:
    """The table, checked. Raises TableError."""
    data = tomllib.loads(path.read_text())
    data.pop("split", None)  # load_split()'s
    fields = dataclasses.fields(Configuration)
    columns = ["hidden", *(f.name for f in fields if f.default is dataclasses.MISSING)]
    if data.pop("columns", None) != columns:
        raise TableError(f"{path.name}: columns must be {columns}")
    if sorted(data) != sorted(OPERATIONS):
        raise TableError(f"{path.name}: operations must be {sorted(OPERATIONS)}")
    table = {}
    for operation, entry in data.items():
        tuned = []
        for row in entry["rows"]:
            if len(row) != len(columns):
                raise TableError(f"{operation} {row}: a row has {len(columns)} numbers")
            tuned.append((row[0], Configuration(*row[1:])))
        if [hidden for hidden, _ in tuned] != sorted({hidden for hidden, _ in tuned}):
            raise TableError(f"{operation}: hidden sizes must rise")
        table[operation] = Entry(tuple(tuned), Configuration(*entry["general"]))
        for configuration in [c for _, c in tuned] + [table[operation].general]:
            configuration.check()
            if operation in ("rms_backward", "layer_backward"):
                _check_norm_backward(operation, configuration)
    return table


def _check_norm_backward(operation: str, c: Configuration) -> None:
    """Raises TableError for a configuration that norm_backward.cpp would refuse."""
    if c.on_demand:
        raise TableError(f"{operation} {c}: on_demand would change dgamma from run to run; use 0")
    if c.keep_weights == WEIGHTS_IN_SHARED_MEMORY:
        raise TableError(f"{operation} {c}: keep_weights is 0, 1 or 2 backward")
