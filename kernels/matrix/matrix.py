# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Prints the numbers of variant sets: kernel instances per direction, head size and dtype.

    ./bazelw run //kernels:matrix -- [--variants=te,jax | --file=qola_manifest.toml]
        [--archs=gfx942] [--format=json] [--missing [--jobs=N] [--bazel_flag=--config=remote-cache]]

Beside the counts stands an estimate of the processor time that compiling them takes:
ck_fmha/groups/cost.py has the model, compile_cost.toml beside it the figures and where they are
from. Nothing is compiled. AITER's objects, which a build has in addition unless
--//kernels:providers leaves them out, are counted, too: they take no time. `--missing` asks Bazel
which of a set's code objects no cache has, and estimates how long these take: missing.py.
`--golden` writes the golden file of counts anew.
"""

from __future__ import annotations

import collections
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import app, flags

from kernels.aiter_asm.launch import shipped
from kernels.archs.archs import read_archs
from kernels.ck_fmha.ckgen.archs import target_of
from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.ck_fmha.groups.cost import FIGURES, CostModel
from kernels.ck_fmha.groups.groups import OWN_LOCKS, LockError, Proof, merged, parse_lock
from kernels.matrix import missing
from kernels.matrix.choice import ChoiceError, chosen, present, variant_set_files
from kernels.matrix.counts import (
    GOLDEN_SETS,
    UPDATE,
    Row,
    by_cell,
    golden,
    of_target,
    rows_of_file,
    rows_of_set,
)
from kernels.variants.values import VariantSetError

_VARIANTS = flags.DEFINE_list("variants", ["core"], "variant sets, files of kernels/variants")
_FILE = flags.DEFINE_string(
    "file", None, "another variant set file, or a manifest of QoLA's, in the place of --variants"
)
_ARCHS = flags.DEFINE_list("archs", ["gfx942"], "archs, records of kernels/archs")
_FORMAT = flags.DEFINE_enum("format", "text", ["text", "json"], "form of the output")
_MISSING = flags.DEFINE_bool("missing", False, "say what the caches lack, and how long it takes")
_JOBS = flags.DEFINE_integer(
    "jobs", None, "compiles at a time, of --missing; default: as many as there are processors"
)
_BAZEL_FLAGS = flags.DEFINE_multi_string(
    "bazel_flag", ["--config=cache"], "of the build that --missing asks about"
)
_GOLDEN = flags.DEFINE_bool("golden", False, "write the golden file instead")

# By Bazel.
_POOL = flags.DEFINE_string("pool", None, "pool.json of @ck_fmha", required=True)
_README = flags.DEFINE_string("readme", None, "README.md beside the variant sets", required=True)
_ARCHS_FILE = flags.DEFINE_string("archs_file", None, "archs.json of @archs", required=True)
_LOCK = flags.DEFINE_string("lock", None, "groups/lock.json", required=True)

_MISSING_COMMAND = "./bazelw run //kernels:matrix -- --missing"
_GOLDEN_FILE = "kernels/matrix/counts.golden"

# Of AITER's objects -> as traits.toml has it.
_DIRECTIONS = {"forward": "fwd", "backward": "bwd", "dq_shuffle": "bwd"}


def _asm_counts(arch: str) -> list[dict[str, Any]]:
    """AITER's objects for an arch, as report() counts instances."""
    cells: collections.Counter[tuple[str, int, int, str]] = collections.Counter(
        (_DIRECTIONS[o.direction], o.head_size_qk, o.head_size_v, o.dtype)
        for o in shipped()
        if o.arch == arch
    )
    return [
        {
            "provider": "asm",
            "direction": direction,
            "head_size": "x".join(map(str, dict.fromkeys((qk, v)))),
            "dtype": dtype,
            "instances": number,
            "cpu_seconds_alone": 0.0,
        }
        for (direction, qk, v, dtype), number in sorted(cells.items())
    ]


def report(
    variant_set: str,
    arch: str,
    rows: Sequence[Row],
    model: CostModel,
    pool: RecordedPool,
    lock: Mapping[str, Mapping[str, Proof]],
) -> dict[str, Any]:
    """The document that is printed of a set for an arch, for JSON.

    lock  of groups/lock.json, what is proven for the arch: group -> member -> proof
    """
    found = present(variant_set, arch, rows)
    of_its_target = of_target(rows, target_of(arch))
    names = [row["name"] for row in found]
    cost = model.estimate(names, pool.groups.values())
    proven = {
        member.partition(":")[2]
        for members in lock.values()
        for member, proof in members.items()
        if not proof.differs
    }
    return {
        "variant_set": variant_set,
        "arch": arch,
        "instances": len(found),
        "left_out": len(of_its_target) - len(found),
        "counts": [
            {
                "provider": "ck",
                "direction": where.direction_name,
                "head_size": where.head_size,
                "dtype": where.dtype,
                "instances": len(of),
                "cpu_seconds_alone": round(sum(map(model.alone, of)), 1),
            }
            for where, of in by_cell(found).items()
        ]
        + _asm_counts(arch),
        "compile": {
            "cpu_seconds": round(cost.seconds),
            "cpu_seconds_alone": round(cost.alone),
            "instances_in_groups": cost.grouped,
            "instances_proven": len(proven & set(names)),
            "groups": cost.groups,
            "other_members_of_groups": cost.others,
        },
    }


def _compile_text(estimate: Mapping[str, Any], instances: int) -> str:
    def time(name: str) -> str:
        return f"{estimate[name]:,} CPU s ({estimate[name] / 3600:.1f} h)"

    grouped, others = estimate["instances_in_groups"], estimate["other_members_of_groups"]
    beside = f" (with {others} kernels of other sets)" if others else ""
    return (
        f"Compiling takes about {time('cpu_seconds')}: {grouped} instances in "
        f"{estimate['groups']} compile groups{beside}, {instances - grouped} alone. Each of them "
        f"alone: {time('cpu_seconds_alone')}.\n"
        f"Proven to be the same in both ways: {estimate['instances_proven']}.\n"
    )


def text(reported: Mapping[str, Any]) -> str:
    """A report for people."""
    counts = reported["counts"]
    columns = [*sorted({entry["dtype"] for entry in counts}), "all", "cpu"]

    def line(
        provider: str, direction: str, head_size: str, entries: Sequence[Mapping[str, Any]]
    ) -> str:
        numbers = dict.fromkeys(columns, 0.0)
        for entry in entries:
            numbers[entry["dtype"]] += entry["instances"]
            numbers["all"] += entry["instances"]
            numbers["cpu"] += entry["cpu_seconds_alone"]
        *shown, cpu = (f"{numbers[column]:>8,.0f}" for column in columns)
        return f"{provider:<10}{direction:<14}{head_size:>9}{''.join(shown)}{cpu:>13}"

    heads = "".join(f"{column:>8}" for column in columns[:-1])
    left = f" ({reported['left_out']} are left out)" if reported["left_out"] else ""
    lines = [
        f"{reported['variant_set']} for {reported['arch']}: "
        f"{reported['instances']:,} kernel instances{left}",
        "",
        f"{'provider':<10}{'direction':<14}{'head size':>9}{heads}{'CPU s alone':>13}",
    ]
    for provider in dict.fromkeys(entry["provider"] for entry in counts):
        of_provider = [entry for entry in counts if entry["provider"] == provider]
        for direction in dict.fromkeys(entry["direction"] for entry in of_provider):
            own = [entry for entry in of_provider if entry["direction"] == direction]
            for head_size in dict.fromkeys(entry["head_size"] for entry in own):
                of_size = [entry for entry in own if entry["head_size"] == head_size]
                lines.append(line(provider, direction, head_size, of_size))
            lines.append(line(provider, direction, "all", own))
        lines.append(line(provider, "all", "all", of_provider))
    lacking = reported.get("missing")
    return (
        "\n".join(lines)
        + "\n\n"
        + _compile_text(reported["compile"], reported["instances"])
        + (missing.text(lacking, reported["instances"]) if lacking else "")
    )


def _checkout(flag: str, use: str, command: str) -> Path:
    root = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if not root:
        raise ChoiceError(f"--{flag} {use}; run it through Bazel: {command}")
    return Path(root)


def _write_golden(pool: RecordedPool, files: Mapping[str, Path], archs: Sequence[str]) -> None:
    root = _checkout("golden", "writes into the source tree", UPDATE)
    sets = {name: rows_of_set(pool, files[name]) for name in GOLDEN_SETS}
    (root / _GOLDEN_FILE).write_text(golden(sets, archs), "ascii")
    print(_GOLDEN_FILE)


def _jobs() -> int:
    """The compiles at a time: as many as there are jobs, and no more than processors."""
    processors = len(os.sched_getaffinity(0))
    jobs = processors if _JOBS.value is None else _JOBS.value
    if jobs < 1:
        raise ChoiceError(f"--jobs={jobs}: no compile would run; allowed: numbers from 1")
    if _JOBS.value is not None and not _MISSING.value:
        raise ChoiceError(f"--jobs={jobs} is of --missing: give that, too")
    if jobs > processors:
        print(
            f"matrix: --jobs={jobs}: this machine has {processors} processors, and the estimate is "
            f"of {processors} compiles at a time",
            file=sys.stderr,
        )
    return min(jobs, processors)


def _sets(pool: RecordedPool, files: Mapping[str, Path]) -> dict[str, list[Row]]:
    """The instances of what is asked for, by its name."""
    if _FILE.value is None:
        names = chosen(_VARIANTS.value, list(files), "variants", "variant set")
        return {name: rows_of_set(pool, files[name]) for name in names}
    if _MISSING.value:
        raise ChoiceError("--file: --missing asks about a set of kernels/variants; give --variants")
    file = Path(os.environ.get("BUILD_WORKING_DIRECTORY", ""), _FILE.value)
    try:
        return {file.stem: rows_of_file(pool, file)}
    except OSError as error:
        raise ChoiceError(
            f"--file: {file}: {error.strerror}; name a variant set file or a manifest of QoLA's"
        ) from None


def _run() -> None:
    pool = RecordedPool(Path(_POOL.value).read_text("utf-8"))
    known_archs = sorted(read_archs(_ARCHS_FILE.value))
    files = variant_set_files(Path(_README.value))
    if _GOLDEN.value:
        _write_golden(pool, files, known_archs)
        return
    sets = _sets(pool, files)
    archs = chosen(_ARCHS.value, known_archs, "archs", "arch")
    model = CostModel(FIGURES.read_text("utf-8"), pool.rows)
    lock = parse_lock(Path(_LOCK.value).read_text("utf-8"))
    for own in sorted(Path(_README.value).parent.glob(OWN_LOCKS)):
        lock = merged(lock, parse_lock(own.read_text("utf-8"), f"kernels/variants/{own.name}"))
    jobs = _jobs()
    reports = []
    for name, rows in sets.items():
        for arch in archs:
            reported = report(name, arch, rows, model, pool, lock.get(arch, {}))
            if _MISSING.value:
                root = _checkout("missing", "asks Bazel", _MISSING_COMMAND)
                compiles = missing.ask(root, name, arch, _BAZEL_FLAGS.value)
                of_arch = [row["name"] for row in present(name, arch, rows)]
                reported["missing"] = missing.report(compiles, of_arch, model, pool, jobs)
            reports.append(reported)
    if _FORMAT.value == "json":
        print(json.dumps(reports, indent=1))
        return
    for each in reports:
        print(text(each))
    print("CPU seconds are estimated: compile_cost.toml of kernels/ck_fmha/groups says how.")


def main(arguments: Sequence[str]) -> int:
    if arguments[1:]:
        raise app.UsageError(f"what is {arguments[1]!r}? See --help")
    try:
        _run()
    except (LockError, ChoiceError, VariantSetError, missing.MissingError) as error:
        print(f"matrix: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    app.run(main)
