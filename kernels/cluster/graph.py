# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The actions of a build of variant sets, from nothing, as its rules make them.

Compile groups are those of the build, or cut smaller: a smaller group is done sooner, and all of
them together take more processor time.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomllib

from kernels.ck_fmha.ckgen.archs import target_of
from kernels.ck_fmha.ckgen.directions import KINDS
from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.ck_fmha.groups.cost import CostModel, Row
from kernels.cluster.schedule import Action
from kernels.matrix.choice import present
from kernels.matrix.counts import of_target, rows_of_set

FIGURES = Path(__file__).with_name("figures.toml")


@dataclasses.dataclass(frozen=True)
class Measured:
    """A build on a real cluster: seconds that it took, and that the simulation has for it."""

    workers: int
    real: float
    simulated: float


@dataclasses.dataclass(frozen=True)
class Figures:
    """The numbers of figures.toml; it says what they are."""

    seconds: Mapping[str, float]
    bytes: Mapping[str, int]
    host: Mapping[str, Any]
    prices: Mapping[str, float]
    sizes: Mapping[str, Mapping[int, tuple[int, int]]]  # kind -> head size -> (object, module)
    clusters: Sequence[Measured]

    @classmethod
    def read(cls, text: str) -> Figures:
        found = tomllib.loads(text)
        return cls(
            seconds=found["seconds"],
            bytes=found["bytes"],
            host=found["host"],
            prices=found["prices"],
            sizes={
                kind: {int(size): (of[0], of[1]) for size, of in sizes.items()}
                for kind, sizes in found["sizes"].items()
            },
            clusters=[Measured(**of) for of in found["clusters"]],
        )

    def size(self, row: Row) -> tuple[int, int]:
        """Bytes of a code object and of its module: of the nearest head size that was measured."""
        wanted = max(row["traits"]["head_size_qk"], row["traits"]["head_size_v"])
        sizes = self.sizes[row["kind"]]
        return sizes[min(sizes, key=lambda size: (abs(size - wanted), size))]


def cut(groups: Iterable[Sequence[str]], most: int) -> Iterator[list[str]]:
    """Names of the instances of groups of "package:instance", no more than `most` in one.

    Raises ValueError for less than one.
    """
    if most < 1:
        raise ValueError(f"groups of {most}: nothing would be in them; allowed: numbers from 1")
    for group in groups:
        names = [member.partition(":")[2] for member in group]
        for start in range(0, len(names), most):
            yield names[start : start + most]


def _launch_files(rows: Iterable[Row], most: int) -> int:
    """The number of host files, with no more than `most` launch functions each."""
    found: dict[tuple[str, str], set[str]] = collections.defaultdict(set)
    for row in rows:
        found[row["targets"][0], KINDS[row["kind"]].header].add(row["launch"])
    return sum(-(-len(launches) // most) for launches in found.values())


def instances(
    name: str, file: Path, pool: RecordedPool, archs: Iterable[str]
) -> dict[str, list[Row]]:
    """Arch -> the instances of a variant set for it. Raises VariantSetError, ChoiceError."""
    rows = rows_of_set(pool, file)
    return {arch: present(name, arch, of_target(rows, target_of(arch))) for arch in archs}


def graph(
    archs: Mapping[str, Sequence[Row]],
    pool: RecordedPool,
    model: CostModel,
    figures: Figures,
    most: int,
) -> list[Action]:
    """The actions up to the wheel.

    archs   arch -> the instances that are built for it
    pool    of all instances, and their groups
    most    members of a group
    """
    parts = list(cut(pool.groups.values(), most))
    actions: list[Action] = []
    objects: list[int] = []
    described: list[int] = []

    def add(kind: str, seconds: float, after: Sequence[int] = (), size: int = 0) -> int:
        actions.append(Action(kind, seconds, tuple(after), size))
        return len(actions) - 1

    def add_object(row: Row, seconds: float, after: Sequence[int] = ()) -> None:
        objects.append(add("HipCodeObject", seconds, after, figures.size(row)[0]))
        description = figures.bytes["description"]
        seconds = model.seconds_of_object
        described.append(add("CodeObjectDescribe", seconds, objects[-1:], description))

    machine = figures.seconds["machine_code"]
    for rows in archs.values():
        by_name = {row["name"]: row for row in rows}
        together = model.grouped(by_name, [[f":{name}" for name in part] for part in parts])
        for wanted, members in together:
            whole = model.compile_of_group(pool.rows[name] for name in members)
            modules = sum(figures.size(pool.rows[name])[1] for name in members)
            seconds = max(whole - machine * len(members), machine)
            group = add("HipCompileGroup", seconds, size=modules)
            for name in sorted(wanted):
                add_object(by_name[name], machine, [group])
        inside = set[str]().union(*(wanted for wanted, _ in together))
        for name, row in by_name.items():
            if name not in inside:
                add_object(row, model.alone(row) - model.seconds_of_object)
    every = [row for rows in archs.values() for row in rows]
    launched = [
        add("HipHost", figures.seconds["launch"], size=figures.bytes["host_object"])
        for _ in range(_launch_files(every, figures.host["launches"]))
    ]
    host = [
        add("CppCompile", figures.host["seconds"], size=figures.bytes["host_object"])
        for _ in range(figures.host["actions"])
    ]
    number = len(objects)
    size = int(sum(actions[at].bytes for at in objects) * figures.host["pack_share"])
    table = add("LaunchTable", figures.seconds["table"] * number, described)
    pack = add("EmbeddedPack", figures.seconds["pack"] * number, [*objects, *described], size)
    link = add("CppLink", figures.seconds["link"], [*host, *launched, table, pack], size)
    add("PyWheel", figures.seconds["wheel"], [link], size)
    return actions
