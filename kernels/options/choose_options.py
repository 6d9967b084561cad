# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Chooses options of code generation by kernel: writes lock.json of ck_fmha/options.

    ./bazelw run //kernels:choose_options -- [--variants=te] [--archs=gfx942,gfx950] \\
        [--shard=2/7] [--budget=45] [--instances=FILE or names [--beside=standard]]

Each kernel is compiled to optimised IR once, with its compile group where that costs less; machine
code is made of it with each choice of choices.json and measured as //kernels:resources does. The
chosen one is without spills and without accesses to scratch in loops where there is such, has the
fewest estimated cycles of these, and is in nothing worse than the compiler's own.

It goes on where an earlier run ended: a kernel that the lock has for the compiler, the source, the
headers and the flags of today is not tried again. The lock is written after each group, sorted, a
line for each kernel, so that locks of several shards merge line by line. Kernels that the pool has
no longer are left out.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from absl import app, flags

from kernels.archs.archs import ComputeUnit, read_archs
from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.ck_fmha.runs import Budget, Trouble, checkout, shard
from kernels.code_object.spec import Recipe
from kernels.matrix.choice import ChoiceError, chosen, present, variant_set_files
from kernels.matrix.counts import rows_of_set
from kernels.options.options import (
    LOCK,
    Costs,
    Entry,
    Lock,
    LockError,
    choose,
    costs,
    lock_text,
    parse_lock,
)
from kernels.resources.builds import BuildError, files_of_aspect
from kernels.resources.measured import Measured, machine_options
from kernels.variants.values import VariantSetError

_VARIANTS = flags.DEFINE_list("variants", ["te"], "variant sets, files of kernels/variants")
_WITHOUT = flags.DEFINE_list("without", ["core"], "variant sets whose kernels are left as they are")
_INSTANCES = flags.DEFINE_list(
    "instances", [], "kernels by name, or files with a name a line, in the place of sets"
)
_BESIDE = flags.DEFINE_list(
    "beside", [], "variant sets in whose compile groups --instances are: for caches that have these"
)
_ARCHS = flags.DEFINE_list("archs", ["gfx942", "gfx950"], "archs, records of kernels/archs")
_SHARD = flags.DEFINE_string("shard", "1/1", "which part of the groups: I/N, from 1/N to N/N")
_BUDGET = flags.DEFINE_float("budget", None, "minutes after which no further group is begun")
_ANEW = flags.DEFINE_bool("anew", False, "also try again what the lock has: for new choices")
_BAZEL_FLAGS = flags.DEFINE_multi_string("bazel_flag", ["--config=cache"], "of all builds")

# By Bazel.
_POOL = flags.DEFINE_string("pool", None, "pool.json of @ck_fmha", required=True)
_README = flags.DEFINE_string("readme", None, "README.md beside the variant sets", required=True)
_ARCHS_FILE = flags.DEFINE_string("archs_file", None, "archs.json of @archs", required=True)

_ASPECT = "//kernels/options:tried.bzl%tried_options"


@dataclasses.dataclass(frozen=True)
class Compile:
    """A kernel's own compile by today's build.

    key      without options of code generation
    options  that it has today
    """

    key: str
    options: tuple[str, ...]


class Builds(Protocol):
    """The builds that a choice goes by."""

    def compiles(self, labels: Sequence[str]) -> dict[str, Compile]: ...

    def tried(self, labels: Sequence[str]) -> dict[str, list[Measured]]: ...


class BazelBuilds:
    """Builds of this checkout."""

    def __init__(self, root: Path, options: Sequence[str]):
        self._root = root
        self._options = options

    def _files(self, labels: Sequence[str], group: str, suffix: str) -> list[Path]:
        files = files_of_aspect(self._root, labels, self._options, _ASPECT, group)
        return [file for file in files if file.name.endswith(suffix)]

    def compiles(self, labels: Sequence[str]) -> dict[str, Compile]:
        """Instance -> its compile; nothing is compiled for that. Raises BuildError."""
        files = self._files(labels, "described", ".described.json")
        command = ["./bazelw", "info", *self._options, "execution_root"]
        told = subprocess.run(
            command, cwd=self._root, stdout=subprocess.PIPE, text=True, check=False
        )
        if told.returncode:
            raise BuildError(f"{' '.join(command)} failed: exit status {told.returncode}")
        execution_root = Path(told.stdout.strip())
        recipes: dict[str, Recipe] = {}
        found = {}
        for file in files:
            of = json.loads(file.read_text("utf-8"))
            if of["recipe"] not in recipes:
                recipes[of["recipe"]] = Recipe.parse((execution_root / of["recipe"]).read_bytes())
            source = (execution_root / of["source"]).read_bytes()
            spec = recipes[of["recipe"]].spec(source, of["arch"], of["flags"])
            found[of["instance"]] = Compile(spec.key(), machine_options(of["copts"]))
        return found

    def tried(self, labels: Sequence[str]) -> dict[str, list[Measured]]:
        """Instance -> its figures with each choice that gives some. Raises BuildError."""
        found = {}
        for file in self._files(labels, "tried", ".tried.json"):
            each = [
                Measured.parse(json.dumps(one))
                for one in json.loads(file.read_text("ascii"))
                if "failed" not in one
            ]
            found[each[0].instance] = each
        return found


@dataclasses.dataclass(frozen=True)
class Kernel:
    """label: of its code object, without the arch."""

    instance: str
    package: str
    label: str

    @property
    def member(self) -> str:
        return f"{self.package}:{self.instance}"


def kernels_by_group(
    pool: RecordedPool, names: Iterable[str], beside: Iterable[str] = ()
) -> dict[str, list[Kernel]]:
    """The kernels that are compiled together, by the names of their groups; one that is compiled by
    itself is alone under its own. Each is compiled as in a build of all of these and those beside.
    """
    group_of = {member: group for group, members in pool.groups.items() for member in members}
    found: dict[str, list[Kernel]] = {}
    wanted = {*names}
    labels = pool.labels({*wanted, *beside})
    for name in sorted(wanted):
        label = labels[name]
        kernel = Kernel(name, pool.packages[name], label)
        grouped = label.endswith(".grouped")
        found.setdefault(group_of[kernel.member] if grouped else name, []).append(kernel)
    return found


def entry(compile: Compile, tried: Sequence[Measured], unit: ComputeUnit) -> Entry:
    """The choice for a kernel. Options with which registers are used early are none: their numbers
    are wrong (docs/races.md, Z)."""
    able = [one for one in tried if not (one.options and one.figures.early)]
    by_options = {one.options: costs(one, unit) for one in able}
    best = choose(by_options, compile.options if compile.options in by_options else ())
    return Entry(compile.key, best, by_options[()], by_options[best])


def summary(instance: str, of: Entry) -> str:
    """The line about a choice."""
    changes = [
        f"{name} {before} -> {after}"
        for name, before, after in zip(Costs._fields, of.before, of.after, strict=True)
        if before != after
    ]
    options = " ".join(of.options) or "the compiler's own"
    return f"{instance}: {options}{': ' if changes else ''}{', '.join(changes)}"


def read(lock_file: Path) -> Lock:
    return parse_lock(lock_file.read_text("utf-8")) if lock_file.exists() else {}


def without_old(lock: Lock, packages: Mapping[str, str]) -> Lock:
    """The lock without kernels that the pool has no longer; packages: instance -> its package."""
    members = {f"{package}:{instance}" for instance, package in packages.items()}
    return {
        arch: {member: each for member, each in of_arch.items() if member in members}
        for arch, of_arch in lock.items()
    }


def choose_all(
    builds: Builds,
    lock_file: Path,
    arch: str,
    unit: ComputeUnit,
    groups: Mapping[str, Sequence[Kernel]],
    in_time: Callable[[], bool],
    anew: bool = False,
) -> list[str]:
    """Writes the options of groups' kernels into the lock. Returns the groups that are left.

    Raises BuildError; what was chosen before is in the lock.
    """
    labels = {k.instance: f"{k.label}.{arch}" for ks in groups.values() for k in ks}
    compiles = builds.compiles(list(labels.values()))
    names = list(groups)
    while names and in_time():
        name = names.pop(0)
        known = read(lock_file).get(arch, {})
        wanted = [
            kernel
            for kernel in groups[name]
            if anew
            or kernel.member not in known
            or known[kernel.member].key != compiles[kernel.instance].key
        ]
        if not wanted:
            continue
        tried = builds.tried([labels[kernel.instance] for kernel in wanted])
        lock = read(lock_file)
        for kernel in wanted:
            each = entry(compiles[kernel.instance], tried[kernel.instance], unit)
            lock.setdefault(arch, {})[kernel.member] = each
            print(f"{arch}: {summary(kernel.instance, each)}", flush=True)
        lock_file.write_text(lock_text(lock), "utf-8")
    return names


def named(texts: Sequence[str], known: Iterable[str], folder: Path) -> list[str]:
    """The kernels that names, or files of names, stand for. Raises Trouble for an unknown one."""
    found: dict[str, None] = {}
    there = set(known)
    for text in texts:
        file = folder / text
        lines = file.read_text("utf-8").splitlines() if file.is_file() else [text]
        for name in filter(None, map(str.strip, lines)):
            if name not in there:
                raise Trouble(
                    f"--instances: {name} is no instance of the pool and no file; "
                    "`./bazelw run //kernels:resources -- --columns=instance` lists a set's"
                )
            found[name] = None
    return list(found)


def _names_of_sets(pool: RecordedPool, arch: str, sets: Sequence[str], flag: str) -> list[str]:
    """The kernels of variant sets for an arch; flag: which has the sets."""
    files = variant_set_files(Path(_README.value))
    wanted = chosen(sets, list(files), flag, "variant set")
    return [r["name"] for s in wanted for r in present(s, arch, rows_of_set(pool, files[s]))]


def _names(pool: RecordedPool, arch: str, root: Path) -> list[str]:
    """The kernels that the flags ask for."""
    folder = Path(os.environ.get("BUILD_WORKING_DIRECTORY", root))
    files = variant_set_files(Path(_README.value))
    out = chosen(_WITHOUT.value, list(files), "without", "variant set") if _WITHOUT.value else []
    left = {row["name"] for name in out for row in rows_of_set(pool, files[name])}
    if _INSTANCES.value:
        names = named(_INSTANCES.value, pool.packages, folder)
        if absent := [n for n in names if arch in pool.rows[n].get("left_out", {})]:
            raise Trouble(f"--instances: {', '.join(absent)}: there is none for {arch}")
        if kept := [name for name in names if name in left]:
            raise Trouble(
                f"--instances: {', '.join(kept)} is of --without={','.join(out)}, whose kernels "
                "are left as they are; allowed: --without= with fewer sets"
            )
        return names
    names = _names_of_sets(pool, arch, _VARIANTS.value, "variants")
    names = [name for name in dict.fromkeys(names) if name not in left]
    if not names:
        raise Trouble(
            f"--without={','.join(out)} leaves nothing of {','.join(_VARIANTS.value)} for {arch}; "
            "allowed: sets that do"
        )
    return names


def _run() -> None:
    root = checkout("//kernels:choose_options")
    budget = Budget(_BUDGET.value)
    shard([], _SHARD.value)
    units = {name: arch.compute_unit for name, arch in read_archs(_ARCHS_FILE.value).items()}
    archs = chosen(_ARCHS.value, sorted(units), "archs", "arch")
    pool = RecordedPool(Path(_POOL.value).read_text("utf-8"))
    if _BESIDE.value and not _INSTANCES.value:
        raise Trouble(f"--beside={','.join(_BESIDE.value)} is for --instances; give both")
    groups_of = {
        arch: kernels_by_group(
            pool,
            _names(pool, arch, root),
            _names_of_sets(pool, arch, _BESIDE.value, "beside") if _BESIDE.value else [],
        )
        for arch in archs
    }
    builds = BazelBuilds(root, _BAZEL_FLAGS.value)
    lock_file = root / LOCK
    lock_file.write_text(lock_text(without_old(read(lock_file), pool.packages)), "utf-8")
    for arch, groups in groups_of.items():
        mine = {name: groups[name] for name in shard(sorted(groups), _SHARD.value)}
        if not mine:
            continue
        left = choose_all(builds, lock_file, arch, units[arch], mine, budget.in_time, _ANEW.value)
        of_arch = read(lock_file).get(arch, {})
        members = [kernel.member for kernels in mine.values() for kernel in kernels]
        entries = [of_arch[member] for member in members if member in of_arch]
        own = sum(_clean(each.before) for each in entries)
        best = sum(_clean(each.after) for each in entries)
        print(
            f"{arch}: {len(entries)} of {len(members)} kernels; without spills and without scratch "
            f"in loops {own} with the compiler's own options, {best} with the chosen ones"
            + (f"; {len(left)} groups are left: run it again" if left else "")
        )


def _clean(of: Costs) -> bool:
    return not (of.spills or of.loop_scratch)


def main(arguments: Sequence[str]) -> int:
    if arguments[1:]:
        raise app.UsageError(f"what is {arguments[1]!r}? See --help")
    try:
        _run()
    except (BuildError, ChoiceError, LockError, Trouble, VariantSetError) as trouble:
        print(f"choose_options: {trouble}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    app.run(main)
