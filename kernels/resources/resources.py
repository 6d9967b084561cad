# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Reports the resources of kernels: registers, LDS, scratch, spills, occupancy, loops, cycles.

    ./bazelw run //kernels:resources -- [--variants=core] [--archs=gfx942] [--page=FILE.html]

README.md beside this file explains the columns and has more command lines. Kernels that are in no
cache are compiled.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from absl import app, flags

from kernels.aiter_asm import launch
from kernels.archs.archs import ComputeUnit, read_archs
from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.ck_fmha.groups.cost import FIGURES, CostModel
from kernels.matrix.choice import ChoiceError, chosen, present, variant_set_files
from kernels.matrix.counts import Row, rows_of_set
from kernels.resources.builds import BuildError, measured_files
from kernels.resources.golden import SET, UPDATE, golden, golden_name
from kernels.resources.measured import COLUMNS, Measured, comparison
from kernels.resources.page import page
from kernels.resources.report import (
    ALL,
    UNMEASURED,
    Condition,
    Record,
    ReportError,
    arranged,
    as_csv,
    as_text,
    drawn,
    known_columns,
    records,
    unmeasured,
    worst_as_text,
)
from kernels.variants.values import VariantSetError

_VARIANTS = flags.DEFINE_list("variants", [SET], "variant sets, files of kernels/variants")
_WITHOUT = flags.DEFINE_list("without", [], "variant sets whose kernels are left out")
_ARCHS = flags.DEFINE_list("archs", ["gfx942"], "archs, records of kernels/archs")
_DRAW = flags.DEFINE_integer("draw", None, "only so many kernels, drawn: of each shape in turn")
_SEED = flags.DEFINE_integer("seed", 7, "of --draw")
_TARGETS = flags.DEFINE_list("targets", [], "labels of code objects, in the place of sets")
_WHERE = flags.DEFINE_multi_string("where", [], "COLUMN=VALUE, also != < <= > >=: which are shown")
_SORT = flags.DEFINE_list("sort", ["instance"], "columns; -COLUMN: the greatest first")
_COLUMNS = flags.DEFINE_list("columns", None, "columns to show")
_FORMAT = flags.DEFINE_enum("format", "text", ["text", "json", "csv"], "form of the output")
_WORST = flags.DEFINE_integer("worst", 10, "how many of the worst are named", lower_bound=0)
_PAGE = flags.DEFINE_string("page", None, "write the HTML page into this file, too")
_AGAINST = flags.DEFINE_string("against", None, "--format=json's output elsewhere: compare")
_GOLDEN = flags.DEFINE_bool("golden", False, f"write the golden files of {SET} instead")
_BAZEL_FLAGS = flags.DEFINE_multi_string("bazel_flag", ["--config=cache"], "of the build")

# By Bazel.
_POOL = flags.DEFINE_string("pool", None, "pool.json of @ck_fmha", required=True)
_OWN_ROWS = flags.DEFINE_multi_string(
    "own_rows", None, "rows.json of each package of kernels of our own", required=True
)
_QUICK_SETS = flags.DEFINE_multi_string("quick_sets", [], "variant sets without AITER's kernels")
_README = flags.DEFINE_string("readme", None, "README.md beside the variant sets", required=True)
_ARCHS_FILE = flags.DEFINE_string("archs_file", None, "archs.json of @archs", required=True)

_FOLDER = "kernels/resources"


class Kernels:
    """The instances that can be measured, by name, and their labels."""

    def __init__(self) -> None:
        self._pool = RecordedPool(Path(_POOL.value).read_text("utf-8"))
        self._own: dict[str, Row] = {}
        self._own_packages: dict[str, str] = {}
        for path in map(Path, _OWN_ROWS.value):
            for row in json.loads(path.read_bytes()):
                self._own[row["name"]] = row
                self._own_packages[row["name"]] = f"{path.parent}"
        archs = read_archs(_ARCHS_FILE.value)
        self._asm: dict[str, Row] = {
            launch.instance(each): launch.row(each, archs) for each in launch.shipped()
        }
        self._files = variant_set_files(Path(_README.value))
        self.rows: dict[str, Row] = {**self._pool.rows, **self._own, **self._asm}

    def wanted(self, arch: str, conditions: Sequence[Condition]) -> list[Row]:
        """The kernels that the flags ask for. Those of our own are in each set, as in each build;
        AITER's in all but those of quick work.

        Args:
          arch: one of the archs.
          conditions: of columns that are known before a kernel is compiled.
        """
        known = list(self._files)
        out = chosen(_WITHOUT.value, known, "without", "variant set") if _WITHOUT.value else []
        left = {row["name"] for name in out for row in self._of_set(name)}
        found: dict[str, Row] = {}
        for name in chosen(_VARIANTS.value, known, "variants", "variant set"):
            found |= {row["name"]: row for row in present(name, arch, self._of_set(name))}
        rows = [row for name, row in found.items() if name not in left]
        if not rows:
            sets = ",".join(_VARIANTS.value)
            raise ChoiceError(f"--without={','.join(out)} leaves nothing of {sets} for {arch}")
        records: list[Record] = [unmeasured(row, arch) for row in rows]
        for condition in conditions:
            records = condition.choose(records)
        names = {record["instance"] for record in records}
        rows = [row for row in rows if row["name"] in names]
        if not rows:
            where = " ".join(f"--where={text}" for text in _WHERE.value)
            raise ChoiceError(f"{where} leaves nothing of {','.join(_VARIANTS.value)} for {arch}")
        return rows if _DRAW.value is None else drawn(rows, _DRAW.value, _SEED.value)

    def _of_set(self, name: str) -> list[Row]:
        # The golden files are of what a compiler has made.
        asm = () if _GOLDEN.value or name in _QUICK_SETS.value else self._asm.values()
        return [*rows_of_set(self._pool, self._files[name]), *self._own.values(), *asm]

    def labels(self, rows: Sequence[Row], arch: str) -> list[str]:
        """Of their code objects, each once. Of AITER's kernels all of an arch are one target."""
        names = [row["name"] for row in rows]
        pooled = self._pool.labels(name for name in names if name in self._pool.rows)
        own = {name: f"//{package}:{name}" for name, package in self._own_packages.items()}
        compiled = own | pooled
        found = (
            f"//kernels/aiter_asm:{arch}" if name in self._asm else f"{compiled[name]}.{arch}"
            for name in names
        )
        return list(dict.fromkeys(found))

    def announce(self, rows: Sequence[Row], arch: str) -> None:
        """Tells the time that compiling them would take."""
        names = [row["name"] for row in rows if row["name"] in self._pool.rows]
        model = CostModel(FIGURES.read_text("utf-8"), self._pool.rows)
        seconds = model.estimate(names, self._pool.groups.values()).seconds
        print(
            f"resources: {len(rows)} kernels for {arch}; compiling those that are in no cache "
            f"takes up to about {seconds:,.0f} CPU s",
            file=sys.stderr,
        )


def _checkout() -> Path:
    root = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if not root:
        raise ChoiceError("run it through Bazel: ./bazelw run //kernels:resources")
    return Path(root)


def _from_where_it_was_called(path: str) -> Path:
    return Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), path)


def _measured(
    kernels: Kernels, archs: Sequence[str], conditions: Sequence[Condition]
) -> list[Measured]:
    labels = list(_TARGETS.value)
    wanted = kernels.rows.keys()
    if not labels:
        by_arch = {arch: kernels.wanted(arch, conditions) for arch in archs}
        for arch, rows in by_arch.items():
            kernels.announce(rows, arch)
            labels += kernels.labels(rows, arch)
        wanted = {row["name"] for rows in by_arch.values() for row in rows}
    options = [*_BAZEL_FLAGS.value, f"--//kernels:archs={','.join(sorted(archs))}"]
    files = measured_files(_checkout(), labels, options)
    found = [Measured.parse(file.read_text("ascii")) for file in files]
    if unknown := sorted({one.instance for one in found} - kernels.rows.keys()):
        raise ChoiceError(f"--targets: no attention kernels: {', '.join(unknown)}")
    found = [one for one in found if one.instance in wanted]
    if not found:
        raise ChoiceError(f"--targets: no attention kernel in {', '.join(_TARGETS.value)}")
    return found


def _write_golden(found: Sequence[Measured], units: Mapping[str, ComputeUnit]) -> None:
    for arch in sorted({one.arch for one in found}):
        name = f"{_FOLDER}/{golden_name(arch)}"
        text = golden((one for one in found if one.arch == arch), units)
        (_checkout() / name).write_text(text, "ascii")
        print(name)


def _compare(file: Path, now: Sequence[Record]) -> None:
    try:
        before = {(one["arch"], one["instance"]): one for one in json.loads(file.read_text())}
        lacking = {column for one in before.values() for column in ALL if column not in one}
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise ReportError(f"--against={file}: not what --format=json prints: {error}") from error
    archs = sorted({record["arch"] for record in now})
    if lacking or archs != sorted({arch for arch, _ in before}):
        raise ReportError(
            f"--against={file}: it is of {', '.join(sorted({a for a, _ in before})) or 'nothing'}"
            f"{' without ' + ', '.join(sorted(lacking)) if lacking else ''}, this build of "
            f"{', '.join(archs)}: make both with the same --archs, by this program"
        )
    for arch in archs:
        old = {name: record for (of, name), record in before.items() if of == arch}
        new = {record["instance"]: record for record in now if record["arch"] == arch}
        print(f"{arch}\n\n{comparison(old, new)}")


def _print(shown: Sequence[Record], columns: Sequence[str] | None) -> None:
    if _FORMAT.value == "json":
        print(json.dumps([{c: record[c] for c in columns or ALL} for record in shown], indent=1))
    elif _FORMAT.value == "csv":
        print(as_csv(shown, columns or ALL), end="")
    else:
        for arch in sorted({record["arch"] for record in shown}):
            of = [record for record in shown if record["arch"] == arch]
            shown_columns = columns or ("provider", *COLUMNS)
            print(f"{arch}\n\n{as_text(of, shown_columns)}")
            if _WORST.value:
                print(worst_as_text(of, _WORST.value))


def _run() -> None:
    units = {name: arch.compute_unit for name, arch in read_archs(_ARCHS_FILE.value).items()}
    archs = chosen(_ARCHS.value, sorted(units), "archs", "arch")
    columns = None if _COLUMNS.value is None else known_columns(_COLUMNS.value, "columns")
    known_columns([name.removeprefix("-") for name in _SORT.value], "sort")
    conditions = [Condition.parse(text) for text in _WHERE.value]
    if _GOLDEN.value and (
        _VARIANTS.value != [SET] or any((_WITHOUT.value, _DRAW.value, _TARGETS.value, _WHERE.value))
    ):
        raise ChoiceError(f"--golden is of all of {SET}: {UPDATE}")
    # A kernel that these leave out need not be compiled. Of labels the kernels are known by their
    # figures alone.
    early = [] if _TARGETS.value else [c for c in conditions if c.column in UNMEASURED]
    kernels = Kernels()
    found = _measured(kernels, archs, early)
    if _GOLDEN.value:
        _write_golden(found, units)
        return
    shown: list[Record] = [*records(found, kernels.rows, units)]
    for condition in conditions:
        if condition not in early:
            shown = condition.choose(shown)
    shown = arranged(shown, _SORT.value)
    if _PAGE.value:
        how = shlex.join(["./bazelw", "run", "//kernels:resources", "--", *_given()])
        text = page(_title(), shown, units, how)
        _from_where_it_was_called(_PAGE.value).write_text(text, "utf-8")
    if _AGAINST.value:
        _compare(_from_where_it_was_called(_AGAINST.value), shown)
    else:
        _print(shown, columns)


def _title() -> str:
    of = ", ".join(_TARGETS.value or _VARIANTS.value)
    if not _TARGETS.value:
        of += f" without those of {', '.join(_WITHOUT.value)}" if _WITHOUT.value else ""
        of += f", {_DRAW.value} of them, drawn" if _DRAW.value else ""
    return f"What kernels need: {of}"


def _given() -> list[str]:
    """The flags of the user, without those of Bazel's."""
    own = ("--pool=", "--own_rows=", "--quick_sets=", "--readme=", "--archs_file=", "--lock=")
    return [argument for argument in sys.argv[1:] if not argument.startswith(own)]


def main(arguments: Sequence[str]) -> int:
    if arguments[1:]:
        raise app.UsageError(f"what is {arguments[1]!r}? See --help")
    try:
        _run()
    except (
        BuildError,
        ChoiceError,
        ReportError,
        VariantSetError,
    ) as error:
        print(f"resources: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    app.run(main)
