# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The cost of loading, analysing and looking up code objects, by their number.

    ./bazelw run //tests/bench:scale [-- --tree=DIR --sets=NAME ... --libraries --lookups
                                         --page=FILE]

For each of the selections below, in a copy of the tree that has no other large set: repositories
are fetched by a first run of one target, the server is stopped, and
`build --nobuild //kernels:launch_table` (or, with --libraries, the set's cc_library targets) is
timed: cold (a new server; also its processor time, which other work on the machine does not
lengthen as much) and again (warm). Then come the actions behind that label (`aquery`), the server's
heap after a garbage collection, and the most memory that was resident. `pool` is of all code
objects of Composable Kernel, for each arch, by themselves and by their groups.

With --lookups, all compiles are then looked up in an empty cache, as `//kernels:matrix --missing`
does: none runs. Its columns are their number and the milliseconds of the server's processor time
for each: what Bazel does for an action that is sent elsewhere, but for talking to the server.

--page writes all that as a page with plots.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from absl import app, flags

from kernels.matrix.missing import ASKING
from tests.bench.workspace import Workspace
from toolchains.pages import pages

_POOL = 'kind("code_object rule", @ck_fmha//...)'
_ALL = "gfx90a,gfx942,gfx950,gfx1200,gfx1201"


@dataclasses.dataclass(frozen=True)
class Selection:
    """Code objects to measure.

    variants  of a variant set file; None: those of core
    archs     that it is built for
    """

    variants: str | None
    archs: str


# By the number of their code objects, roughly.
_SETS = {
    "50": Selection(None, "gfx942"),
    "500": Selection('direction = "fwd"\nhead_size_qk = 192\n', "gfx942"),
    "5000": Selection('direction = "bwd"\n', "gfx950"),
    "20000": Selection("", "gfx942,gfx1200,gfx1201"),
    "full": Selection("", _ALL),
    "pool": Selection("", _ALL),
}

_TREE = flags.DEFINE_string(
    "tree", os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."), "the source tree"
)
_OUTPUT_ROOT = flags.DEFINE_string("output_root", None, "Bazel's, to keep fetched files")
_LIBRARIES = flags.DEFINE_bool("libraries", False, "the sets as cc_library targets")
_LOOKUPS = flags.DEFINE_bool("lookups", False, "look all compiles up in an empty cache, too")
_OPTIONS = flags.DEFINE_multi_string("bazel_flag", [], "of the builds that look compiles up")
_PAGE = flags.DEFINE_string("page", None, "file to write plots to")
_CHART_JS = flags.DEFINE_string("chart_js", None, "file of Chart.js, by Bazel")
_CHOSEN = flags.DEFINE_multi_enum("sets", list(_SETS), list(_SETS), "which to measure")


class Tree(Workspace):
    """A copy of a source tree, with an output root of its own."""

    def __init__(self, source: Path, base: Path, output_root: Path):
        super().__init__(base / "tree", [f"--output_user_root={output_root}"])
        self.root.mkdir()
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=source,
            check=True,
            capture_output=True,
        ).stdout.decode()
        files = [name for name in listed.split("\0") if name and (source / name).is_file()]
        command = ["cp", "--parents", "-P", "-t", str(self.root), *files]
        subprocess.run(command, cwd=source, check=True)

    def group(self, labels: Sequence[str]) -> tuple[list[str], list[str]]:
        """Makes a target of others. Returns one of them, and it.

        The time that Bazel takes for targets that a command names grows with the square of their
        number: 186 s of a processor for 73,668, before it had loaded all of their packages.
        """
        package = self.root / "scale"
        package.mkdir()
        (package / "BUILD.bazel").write_text(f"filegroup(name = 'pool', srcs = {list(labels)})\n")
        return [labels[0]], ["//scale:pool"]

    def seconds(self, *arguments: str) -> float:
        start = time.monotonic()
        self.bazel(*arguments)
        return time.monotonic() - start

    def _of_server(self, file: str) -> str:
        pid = self.bazel("info", "server_pid").strip()
        return Path(f"/proc/{pid}/{file}").read_text()

    def server_cpu_seconds(self) -> float:
        """Processor time that the server has used since it started."""
        fields = self._of_server("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def server_megabytes(self) -> float:
        """The most memory of the server that was resident."""
        return int(self._of_server("status").split("VmHWM:")[1].split()[0]) / 1000

    def lookups(self, *arguments: str) -> tuple[int, float]:
        """Has all compiles of a build looked up in a cache that has none. Returns their number and
        the processor time of the server."""
        with tempfile.TemporaryDirectory(dir=self.root.parent) as folder:
            events = Path(folder, "events")
            options = (f"--build_event_json_file={events}", f"--disk_cache={folder}/cache")
            before = self.server_cpu_seconds()
            self.bazel("build", *ASKING, *options, *arguments, statuses=(1,))
            seconds = self.server_cpu_seconds() - before
            with events.open() as lines:
                return refused(lines), seconds


def counts(summary: str) -> tuple[int, int]:
    """All actions, and those that compile a code object, of `aquery --output=summary`."""
    actions = int(summary.split(" total actions", 1)[0].split()[-1])
    mnemonics = dict(
        line.strip().rsplit(": ", 1)
        for line in summary.split("Mnemonics:", 1)[1].split("\n\n", 1)[0].splitlines()
        if ": " in line
    )
    return actions, int(mnemonics["HipCodeObject"])


def refused(lines: Iterable[str]) -> int:
    """The number of compiles that did not run, of a build's events."""
    events = (json.loads(line) for line in lines)
    return sum(
        event.get("action", {}).get("type") in ("HipCompileGroup", "HipCodeObject")
        and not event["action"].get("success")
        for event in events
    )


def variant_set_of(root: Path, name: str) -> str:
    """The set of the tree that is measured. Where the tree has none that is it, one is written."""
    variants = _SETS[name].variants
    if variants is None:
        return "core"
    folder = root / "kernels/variants"
    # An older tree has no such set, and no limit that all of its instances were above.
    if not variants and (folder / "full.toml").is_file():
        return "full"
    (folder / "scale.toml").write_text(f"[[variants]]\n{variants}")
    return "scale"


@dataclasses.dataclass(frozen=True)
class Measured:
    """A selection: times in seconds, the server's memory in megabytes."""

    name: str
    objects: int
    actions: int
    cold: float
    processor: float
    warm: float
    heap: int
    resident: float
    compiles: int = 0
    lookup: float = 0.0

    def line(self) -> str:
        """One line of the table."""
        line = (
            f"{self.name:>5} {self.objects:>8} {self.actions:>8} "
            f"{self.actions / self.objects:>8.1f} {self.cold:>7.1f} {self.processor:>7.1f} "
            f"{self.warm:>7.2f} {self.heap:>6}MB {self.resident:>7.0f}"
        )
        return line + (f" {self.compiles:>8} {1000 * self.lookup:>9.1f}" if self.compiles else "")


def measure(tree: Tree, name: str) -> Measured:
    variant_set, archs = variant_set_of(tree.root, name), _SETS[name].archs
    options = [f"--//kernels:variants={variant_set}", f"--//kernels:archs={archs}"]
    first = wanted = ["//kernels:launch_table"]
    if name == "pool":
        first, wanted = tree.group(tree.bazel("query", _POOL).split())
    elif _LIBRARIES.value:
        first = wanted = [
            f"@variant_sets//{variant_set}:{arch}.library" for arch in archs.split(",")
        ]
    build = ["build", "--nobuild", *options]
    tree.bazel(*build, *first)
    tree.bazel("shutdown")
    cold = tree.seconds(*build, *wanted)
    processor = tree.server_cpu_seconds()
    warm = tree.seconds(*build, *wanted)
    heap = int(tree.bazel("info", "used-heap-size-after-gc").strip().removesuffix("MB"))
    resident = tree.server_megabytes()
    # The counts are of the labels' own needs, code objects and rows, not the toolchains.
    query = f"deps(set({' '.join(wanted)}))"
    actions, objects = counts(tree.bazel("aquery", *options, query, "--output=summary"))
    compiles, seconds = 0, 0.0
    if _LOOKUPS.value:
        compiles, seconds = tree.lookups(*options, *_OPTIONS.value, *wanted)
    return Measured(
        name=name,
        objects=objects,
        actions=actions,
        cold=cold,
        processor=processor,
        warm=warm,
        heap=heap,
        resident=resident,
        compiles=compiles,
        lookup=seconds / compiles if compiles else 0.0,
    )


def page(measured: Sequence[Measured], chart_js: Path) -> str:
    """Plots and their table, by the number of code objects."""
    ordered = sorted(measured, key=lambda one: one.objects)
    labels = [f"{one.objects:,}" for one in ordered]

    def plot(title: str, y: str, **series: str) -> pages.Plot:
        values = {
            label.replace("_", " "): [round(getattr(one, field), 2) for one in ordered]
            for label, field in series.items()
        }
        return pages.Plot(title, "line", labels, values, x="code objects", y=y)

    plots = [
        plot("Loading and analysis", "seconds", new_server="cold", its_CPU_time="processor"),
        plot("Again, nothing changed", "seconds", same_server="warm"),
        plot("Memory of the server", "MB", heap="heap", resident_at_most="resident"),
    ]
    if all(one.compiles for one in ordered):
        plots.append(plot("A compile that is looked up in a cache", "CPU s", each="lookup"))
    heads = ["Objects", "Actions", "Cold s", "CPU s", "Warm s", "Heap MB", "Resident MB"]
    rows: list[list[pages.Cell]] = [
        [one.objects, one.actions, one.cold, one.processor, one.warm, one.heap, one.resident]
        for one in ordered
    ]
    return pages.page(
        "Loading and analysis by code objects",
        pages.plots(plots) + pages.table(heads, rows),
        plots,
        chart_js,
    )


def main(_arguments: Sequence[str]) -> None:
    measured = []
    with tempfile.TemporaryDirectory(prefix="scale-") as base:
        tree = Tree(Path(_TREE.value), Path(base), Path(_OUTPUT_ROOT.value or f"{base}/output"))
        heads = "  set  objects  actions  /object  cold s   cpu s  warm s     heap  RSS MB"
        print(heads + (" compiles ms/lookup" if _LOOKUPS.value else ""), flush=True)
        try:
            for name in _CHOSEN.value:
                measured.append(measure(tree, name))
                print(measured[-1].line(), flush=True)
        finally:
            tree.bazel("shutdown")
    if _PAGE.value:
        to = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), _PAGE.value)
        to.write_text(page(measured, Path(_CHART_JS.value)), "utf-8")
        print(to)


if __name__ == "__main__":
    app.run(main)
