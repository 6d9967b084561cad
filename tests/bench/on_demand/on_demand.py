# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The first use of a kernel that is not in the library, beside ck-jit's way.

    ./bazelw run //tests/bench:on_demand [-- --repeat=N --only=REGEX]

For each kernel of `smoke` on gfx942, in turns, from an empty cache:

    ck-jit  a compile for host and device at once, by hipcc's way: the same clang with the C
            library's allocator, AITER's flags, upstream's headers with the patches of their
            defects, upstream's entry. Its link and its dlopen are left out, and the host code that
            launches, to its advantage
    ours    a process that asks the library's store, which asks the compile kit: from the question
            to the object in the cache
    again   another process that asks for the same kernel: it is in the user's cache

All processor time of all processes is counted, user and system. Our way's object must be, byte for
byte, the code object of the build; if it is not, its name and an exit status of 1 say so.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from tests.bench.compiling import graph, peers, runner
from tests.bench.on_demand import costs

_TREE = flags.DEFINE_string(
    "tree", os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."), "the source tree"
)
_NINJA = flags.DEFINE_string("ninja", None, "ninja", required=True)
_BUNDLER = flags.DEFINE_string("bundler", None, "clang-offload-bundler", required=True)
_KIT = flags.DEFINE_string("kit", None, "the compile kit", required=True)
_GET = flags.DEFINE_string("get", None, "the program that asks for a kernel", required=True)
_SPECS = flags.DEFINE_string("specs", None, "specs, each beside its code object", required=True)
_ONLY = flags.DEFINE_string("only", "", "kernels whose name has this (a regex)")
_REPEAT = flags.DEFINE_integer("repeat", 1, "how often all is compiled", lower_bound=1)
_AGAIN = 20  # a process's question takes so little that one alone says nothing


@dataclasses.dataclass(frozen=True)
class Measured:
    """A kernel's first use in both ways, and the second one, in milliseconds."""

    name: str
    theirs: costs.Cost
    ours: costs.Cost
    again: float


def table(measured: Sequence[Measured]) -> str:
    """A row for each kernel, and one of all."""
    lines = [
        f"{'':<40} |{'ck-jit':>15} |{'ours':>15} |{'ours / ck-jit':>15} |{'again':>8}",
        f"{'':<40} |{'CPU s':>7} {'wall s':>7} |{'CPU s':>7} {'wall s':>7} |"
        f"{'CPU':>7} {'wall':>7} |{'ms':>8}",
    ]

    def row(name: str, theirs: costs.Cost, ours: costs.Cost, again: float) -> str:
        return (
            f"{name[:40]:<40} |{theirs.cpu:>7.1f} {theirs.wall:>7.1f} |{ours.cpu:>7.1f} "
            f"{ours.wall:>7.1f} |{ours.cpu / theirs.cpu:>7.2f} {ours.wall / theirs.wall:>7.2f} "
            f"|{again:>8.2f}"
        )

    def total(them: Sequence[costs.Cost]) -> costs.Cost:
        return costs.Cost(sum(cost.cpu for cost in them), sum(cost.wall for cost in them))

    lines += [row(m.name, m.theirs, m.ours, m.again) for m in measured]
    theirs, ours = total([m.theirs for m in measured]), total([m.ours for m in measured])
    lines.append(row("all", theirs, ours, max(m.again for m in measured)))
    return "\n".join(lines)


class Bench:
    def __init__(self, base: Path) -> None:
        self._base = base
        self._tree = Path(_TREE.value)
        build = graph.Graph(self._tree, "@variant_sets//smoke:gfx942")
        self._plain = build.plain_compiles()
        self._runner = runner.Runner(
            ninja=Path(_NINJA.value).absolute(),
            jobs=1,
            sources=self._tree,
            external=build.external(),
        )
        self._peers = peers.Peers(
            self._runner.external,
            next(iter(self._plain.values())),
            base / "programs",
            Path(_BUNDLER.value).absolute(),
            flags="aiter",
        )

    def measure(self, spec: Path) -> Measured:
        """Raises ValueError where an object differs from the build's."""
        expected = hashlib.sha256(spec.with_suffix(".hsaco").read_bytes()).hexdigest()
        with tempfile.TemporaryDirectory(dir=self._base) as folder:
            action = self._peers.compile_of(self._plain[spec.stem])
            usage = self._runner.run(Path(folder) / "root", [action], [action.outputs[0]])
        with tempfile.TemporaryDirectory(dir=self._base) as cache:
            command = [_GET.value, _KIT.value, str(spec), cache]
            ours, said = costs.first_use(command)
            again = []
            for _ in range(_AGAIN):
                _, later = costs.first_use(command)
                again.append(float(later.split()[0]))
                said += later
        if {line.split()[1] for line in said.splitlines()} != {expected}:
            raise ValueError(f"{spec.stem}: not the code object of the build: {said}")
        theirs = costs.Cost(usage.cpu, usage.wall)
        return Measured(spec.stem, theirs, ours, statistics.median(again))


def main(arguments: Sequence[str]) -> int:
    if arguments[1:]:
        raise app.UsageError(f"what is {arguments[1]!r}? See --help")
    measured = []
    with tempfile.TemporaryDirectory(prefix="on-demand-") as base:
        try:
            specs = costs.chosen([Path(path) for path in _SPECS.value.split()], _ONLY.value)
            bench = Bench(Path(base))
            for _ in range(_REPEAT.value):
                for spec in specs:
                    measured.append(bench.measure(spec))
                    print(table(measured[-1:]).splitlines()[-2], flush=True)
        except (ValueError, runner.FailedError, subprocess.CalledProcessError) as error:
            print(error, file=sys.stderr)
            return 1
    print(f"\n{table(measured)}")
    return 0


if __name__ == "__main__":
    app.run(main)
