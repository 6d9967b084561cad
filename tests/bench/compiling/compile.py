# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The cost of a cold build of kernels, beside the way of AITER, QoLA and TransformerEngine.

    ./bazelw run //tests/bench:compile [-- --repeat=N --only=REGEX --quick ...]

The instances are a variant set's, `bench` if no other is named. For each group of instances that
this build compiles together, in turns, one process at a time and without any cache:

    peers   a compile for host and device at once per instance, by hipcc's way: the same clang
            with the C library's allocator, AITER's flags, upstream's headers with the patches
            of their defects
    ours    the actions of this build that make the code objects, with their own command lines,
            taken from Bazel's action graph
    plain   a compile for the device only per instance: the definition of the code object

All are run by ninja in a new folder, and all processor time of all processes is counted, user and
system. Bazel's own time is not (//tests/bench:scale has it), nor are what describes a code object
and a peer's dispatcher, host bindings and links. Every code object of ours must be, byte for byte,
the plain compile's; if one is not, its name and an exit status of 1 say so.

With --nopeers only ours is run, and nothing compared: for the figures of
kernels/ck_fmha/groups/compile_cost.toml. --beside=DIR runs ours and that of another checkout, a
group of each at the same time, and compares nothing: for the price of other sources or another
compiler.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from tests.bench.compiling import graph, peers, plan, report, runner
from tests.e2e import action_graph

_TREE = flags.DEFINE_string(
    "tree", os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."), "the source tree"
)
_NINJA = flags.DEFINE_string("ninja", None, "ninja", required=True)
_BUNDLER = flags.DEFINE_string("bundler", None, "clang-offload-bundler", required=True)
_VARIANTS = flags.DEFINE_string("variants", "bench", "the variant set")
_ARCH = flags.DEFINE_string("arch", "gfx942", "the arch")
_ONLY = flags.DEFINE_string("only", "", "groups with a code object whose name has this (a regex)")
_QUICK = flags.DEFINE_bool("quick", False, "one group of each of the two least sizes")
_REPEAT = flags.DEFINE_integer("repeat", 1, "how often all is compiled", lower_bound=1)
_JOBS = flags.DEFINE_integer("jobs", 1, "how many processes at once", lower_bound=1)
_PEERS = flags.DEFINE_bool("peers", True, "compile by the peers' way as well, and compare")
_BESIDE = flags.DEFINE_string("beside", None, "another checkout, whose way is run beside ours")
_FLAGS = flags.DEFINE_enum(
    "peer_flags",
    "aiter",
    ["aiter", "ours"],
    "the peers' flags; with ours they make our machine code, which is then compared, too",
)


class Bench:
    """A tree's groups, and what compiles them."""

    def __init__(self, base: Path, tree: Path, with_peers: bool) -> None:
        self._base = base
        self._defined: dict[str, bytes] = {}  # code objects of plain compiles, by name
        self.identical: dict[str, bool] = {}  # what was compared
        build = graph.Graph(tree, f"@variant_sets//{_VARIANTS.value}:{_ARCH.value}")
        self.ours = plan.groups(build.actions())
        self._runner = runner.Runner(
            ninja=Path(_NINJA.value).absolute(),
            jobs=_JOBS.value,
            sources=tree,
            external=build.external(),
        )
        if with_peers:
            self._plain = build.plain_compiles()
            self._peers = peers.Peers(
                self._runner.external,
                next(iter(self._plain.values())),
                base / "programs",
                Path(_BUNDLER.value).absolute(),
                flags=_FLAGS.value,
            )

    def _run(
        self, actions: Sequence[action_graph.Action], wanted: Sequence[str]
    ) -> tuple[list[bytes], runner.Usage]:
        """Figures of the wanted files, and the cost of making them."""
        with tempfile.TemporaryDirectory(dir=self._base) as folder:
            root = Path(folder) / "root"
            usage = self._runner.run(root, actions, wanted)
            return [(root / path).read_bytes() for path in wanted], usage

    def _define(self, group: plan.Group) -> None:
        """Compiles each code object of a group plainly, once."""
        names = [plan.stem(output) for output in group.outputs]
        missing = [name for name in names if name not in self._defined]
        if not missing:
            return
        actions = [self._plain[name] for name in missing]
        made, _ = self._run(actions, [action.outputs[0] for action in actions])
        self._defined.update(zip(missing, made, strict=True))

    def measure(self, group: plan.Group) -> report.Measured:
        """Compiles a group in each way, and compares. The plain way comes first: files are warm."""
        self._define(group)
        names = [plan.stem(path) for path in group.outputs]
        theirs = [self._peers.compile_of(self._plain[name]) for name in names]
        made, their_usage = self._run(theirs, [a.outputs[0] for a in theirs])
        if self._peers.flags is None:
            for name, host_object in zip(names, made, strict=True):
                self._compare(
                    f"{name}, a peer's", name, peers.device_code(host_object, _ARCH.value)
                )
        objects, our_usage = self._run(group.actions, group.outputs)
        for name, code_object in zip(names, objects, strict=True):
            self._compare(name, name, code_object)
        return report.Measured(len(names), their_usage, our_usage)

    def cost(self, group: plan.Group) -> runner.Usage:
        """Compiles a group in our way alone."""
        return self._run(group.actions, group.outputs)[1]

    def _compare(self, what: str, name: str, code_object: bytes) -> None:
        same = code_object == self._defined[name]
        self.identical[what] = same and self.identical.get(what, True)


def asked_for(bench: Bench) -> list[plan.Group]:
    """The groups that the flags choose. Raises ValueError if that is nothing."""
    whole, partly = plan.whole(bench.ours)
    for group in partly:
        print(f"left out, as others are compiled with it: {group.name}")
    return plan.chosen(whole, _ONLY.value, _QUICK.value)


def measure_ours(bench: Bench) -> None:
    """All that is asked for in our way, with a line for each group."""
    groups = asked_for(bench)
    total = 0.0
    for turn in range(_REPEAT.value):
        for group in groups:
            usage = bench.cost(group)
            total += usage.cpu
            print(
                f"{turn + 1}/{_REPEAT.value}: {usage.cpu:.1f} CPU s, {usage.wall:.1f} s, "
                f"{usage.memory / 1e9:.2f} GB: {group.name}",
                flush=True,
            )
    print(f"{total / _REPEAT.value:.1f} CPU s in all")


def measure_beside(bench: Bench, other: Bench) -> None:
    """All that is asked for in our way and in another checkout's: a group of each at the same time,
    so that other work on the machine slows both alike."""
    pairs = list(itertools.zip_longest(asked_for(bench), asked_for(other)))
    spent = [0.0, 0.0]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for turn in range(_REPEAT.value):
            for pair in pairs:
                running = [
                    (i, group, pool.submit((bench, other)[i].cost, group))
                    for i, group in enumerate(pair)
                    if group is not None
                ]
                for i, group, cost in running:
                    usage = cost.result()
                    spent[i] += usage.cpu
                    print(
                        f"{turn + 1}/{_REPEAT.value}: {('ours', 'beside')[i]}: "
                        f"{usage.cpu:.1f} CPU s, {usage.memory / 1e9:.2f} GB, {usage.size} bytes: "
                        f"{group.name}",
                        flush=True,
                    )
    ours, beside = (seconds / _REPEAT.value for seconds in spent)
    print(f"{ours:.1f} CPU s of ours, {beside:.1f} beside, ratio {ours / beside:.2f}")


def measure(bench: Bench) -> list[report.Measured]:
    """All that is asked for, with a line for each group."""
    groups = asked_for(bench)
    measured = []
    for turn in range(_REPEAT.value):
        for group in groups:
            one = bench.measure(group)
            measured.append(one)
            print(
                f"{turn + 1}/{_REPEAT.value}: {one.peers.cpu:.1f} and {one.ours.cpu:.1f} CPU s, "
                f"ratio {one.ratio:.2f}: {group.name}",
                flush=True,
            )
    return measured


def main(arguments: Sequence[str]) -> int:
    if arguments[1:]:
        raise app.UsageError(f"what is {arguments[1]!r}? See --help")
    with tempfile.TemporaryDirectory(prefix="compile-") as base:
        try:
            bench = Bench(Path(base), Path(_TREE.value), _PEERS.value and not _BESIDE.value)
            if _BESIDE.value:
                measure_beside(bench, Bench(Path(base), Path(_BESIDE.value), False))
                return 0
            if not _PEERS.value:
                measure_ours(bench)
                return 0
            measured = measure(bench)
        except (ValueError, runner.FailedError) as error:
            print(error, file=sys.stderr)
            return 1
    print(f"\n{report.table(measured, _REPEAT.value)}")
    different = [what for what, same in bench.identical.items() if not same]
    for what in different:
        print(f"not identical to its plain compile: {what}")
    count = len(bench.identical)
    print(f"identical to plain compiles: {count - len(different)} of {count}")
    return 1 if different else 0


if __name__ == "__main__":
    app.run(main)
