# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Launch configurations of the norm and softmax kernels: the table and the choice from it."""

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
RESERVED_SHARED_BYTES = 1024  # of each CTA
WEIGHTS_IN_SHARED_MEMORY = 3  # of keep_weights


@dataclasses.dataclass(frozen=True)
class Device:
    """The traits of a device that a choice depends on."""

    warp: int  # threads
    bulk_copies: bool  # and clusters
    named_barriers: bool  # rows of several warps can share a CTA
    shared_bytes: int  # that one CTA, or all of a multiprocessor, can have


HOPPER = Device(warp=32, bulk_copies=True, named_barriers=True, shared_bytes=227 * 1024)


def _rounded_up(count: int, unit: int) -> int:
    return -(-count // unit) * unit


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

    def narrowed(self, limit: int, width: int) -> Configuration:
        """For rows of `width` columns of 16 bits, of what was tuned for `limit`: threads have as
        many vectors of a row, and as many warps share it as that takes."""
        if self.lanes < 32:
            return self
        vectors = -(-limit // (8 * self.cluster * self.lanes))
        lanes = _rounded_up(-(-width // (8 * self.cluster * vectors)), 32)
        return dataclasses.replace(self, lanes=lanes, threads=lanes * (self.threads // self.lanes))

    def packs(self, hidden: int, vector: int) -> int:
        """Vectors of a row that each thread has."""
        return -(-hidden // (self.cluster * self.lanes * vector))

    def resident(self, hidden: int, vector: int) -> bool:
        """Whether registers can hold a row."""
        return self.packs(hidden, vector) * vector <= REGISTER_ELEMENTS

    def ring_bytes(self, hidden: int, vector: int, element_bytes: int) -> int:
        """Shared memory of a CTA's ring; `element_bytes` adds up over the matrices read."""
        slice_columns = self.packs(hidden, vector) * min(self.lanes, 32) * vector
        return self.stages * (self.threads // 32) * slice_columns * element_bytes

    def weights_bytes(self, hidden: int, vector: int, weight_bytes: int) -> int:
        """Shared memory in which norm_forward keeps gamma and beta, behind the ring;
        `weight_bytes`: of a column of both."""
        if self.keep_weights != WEIGHTS_IN_SHARED_MEMORY:
            return 0
        return self.threads * self.packs(hidden, vector) * vector * weight_bytes

    def combine_bytes(self, hidden: int, vector: int, sums: int) -> int:
        """Shared memory in which norm_backward adds the rows of a CTA up, in the ring's place;
        `sums`: 1 for dgamma, 2 for dgamma and dbeta."""
        if self.threads == self.lanes or not self.resident(hidden, vector):
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


def load(path: Path = TABLE) -> dict[str, Entry]:
    """The table, checked. Raises TableError."""
    data = tomllib.loads(path.read_text())
    columns = ["hidden", *(f.name for f in dataclasses.fields(Configuration))]
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


def choose(
    entry: Entry,
    hidden: int,
    vector: int,
    element_bytes: int,
    *,
    x_bytes: int,
    weight_bytes: int = 0,
    sums: int = 0,
    sixteen_byte_rows: bool = True,
    device: Device = HOPPER,
) -> Configuration:
    """The configuration for rows of `hidden` columns.

    aiter/norm/configure.cc chooses the same; its test compares the two.

    Args:
      entry: of the operation.
      hidden: columns, at least 1.
      vector: columns that a thread moves at once.
      element_bytes: bytes of a column, added up over the matrices read.
      x_bytes: of an element of the first of them.
      weight_bytes: bytes of a column of gamma and, if there is one, beta; 0 backward.
      sums: of norm_backward over the rows: 1 for dgamma, 2 for dgamma and dbeta; else 0.
      sixteen_byte_rows: every row of every matrix read starts at a multiple of 16 bytes and has
        a multiple of 16 bytes, which bulk copies need.
      device: that the kernel is for.

    Raises:
      ValueError: hidden is below 1.
    """
    if hidden < 1:
        raise ValueError(f"hidden is {hidden}; a row has at least 1 column")
    width = hidden * x_bytes // 2  # in columns of 16 bits, which the table is of
    c = next(
        (c.narrowed(limit, width) for limit, c in entry.tuned if width <= limit), entry.general
    )
    if not device.bulk_copies:
        c = dataclasses.replace(c, on_demand=0)
        if c.cluster > 1:
            lanes = min(1024, c.lanes * c.cluster)
            c = dataclasses.replace(c, cluster=1, lanes=lanes, threads=lanes, ctas_per_sm=1)
    if c.lanes > device.warp and c.lanes % device.warp:
        lanes = _rounded_up(c.lanes, device.warp)
        c = dataclasses.replace(c, lanes=lanes, threads=lanes)
    if not device.bulk_copies or not sixteen_byte_rows:
        c = dataclasses.replace(c, stages=0)
    several_warps = c.lanes > device.warp
    combine = _other_shared(c) + c.combine_bytes(hidden, vector, sums)
    if (several_warps and not device.named_barriers) or combine > device.shared_bytes:
        c = dataclasses.replace(c, threads=max(c.lanes, device.warp))
    while (c.stages or c.keep_weights == WEIGHTS_IN_SHARED_MEMORY) and c.ctas_per_sm * _shared(
        c, hidden, vector, element_bytes, weight_bytes
    ) > device.shared_bytes:
        if c.stages > 1:
            c = dataclasses.replace(c, stages=c.stages - 1)
        elif c.keep_weights == WEIGHTS_IN_SHARED_MEMORY:
            c = dataclasses.replace(c, keep_weights=0)
        elif c.ctas_per_sm > 1:
            c = dataclasses.replace(c, ctas_per_sm=c.ctas_per_sm - 1)
        else:
            c = dataclasses.replace(c, stages=0)
    if c.lag and not (c.resident(hidden, vector) and c.lanes * c.cluster > device.warp):
        c = dataclasses.replace(c, lag=0)
    return c


def _other_shared(c: Configuration) -> int:
    """Shared memory that a CTA takes beside rows and weights: the ring's barriers, exchange and
    turns (rows.h), what is reserved."""
    slots = c.cluster * max(1, c.lanes // 32)
    exchange = (4 if slots > 1 else 1) * (c.threads // c.lanes) * slots * 2 * 4 + 32
    barriers = 8 * c.stages * (c.threads // 32)
    turns = 16 * max(4, 2 * (c.stages + 3))
    return barriers + exchange + turns + RESERVED_SHARED_BYTES


def _shared(
    c: Configuration, hidden: int, vector: int, element_bytes: int, weight_bytes: int
) -> int:
    """Shared memory that a CTA takes."""
    ring = c.ring_bytes(hidden, vector, element_bytes)
    return ring + c.weights_bytes(hidden, vector, weight_bytes) + _other_shared(c)
