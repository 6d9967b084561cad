# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The cost of loading, analysing and looking up code objects, by their number.

    ./bazelw run //tests/bench:scale [-- --tree=DIR --sets=NAME ... --libraries --lookups]

For each of the selections below, in a copy of the tree that has no other large set: repositories
are fetched by a first run, the server is stopped, and `build --nobuild //kernels:launch_table` (or,
with --libraries, the set's cc_library targets) is timed: cold (a new server; also its processor
time, which other work on the machine does not lengthen as much) and again (warm). Then come the
actions behind that label (`aquery`), the server's heap after a garbage collection, and the most
memory that was resident. `pool` is of all code objects of Composable Kernel, for each arch, by
themselves and by their groups.

With --lookups, all compiles are then looked up in an empty cache, as `//kernels:matrix --missing`
does: none runs. Its columns are their number and the milliseconds of the server's processor time
for each: what Bazel does for an action that is sent elsewhere, but for talking to the server.
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

_POOL = "@ck_fmha//..."
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


def measure(tree: Tree, name: str) -> str:
    """One line of the table."""
    variant_set, archs = variant_set_of(tree.root, name), _SETS[name].archs
    options = [f"--//kernels:variants={variant_set}", f"--//kernels:archs={archs}"]
    targets = ["//kernels:launch_table"]
    if name == "pool":
        targets = [_POOL]
    elif _LIBRARIES.value:
        targets = [f"@variant_sets//{variant_set}:{arch}.library" for arch in archs.split(",")]
    build = ["build", "--nobuild", *options, *targets]
    tree.bazel(*build)
    tree.bazel("shutdown")
    cold = tree.seconds(*build)
    cpu = tree.server_cpu_seconds()
    warm = tree.seconds(*build)
    heap = tree.bazel("info", "used-heap-size-after-gc").strip()
    most = tree.server_megabytes()
    # The counts are of the labels' own needs, code objects and rows, not the toolchains.
    wanted = f"deps(set({' '.join(targets)}))"
    listed = tree.bazel("aquery", *options, wanted, "--output=summary")
    actions, objects = counts(listed)
    line = (
        f"{name:>5} {objects:>8} {actions:>8} {actions / objects:>8.1f} "
        f"{cold:>7.1f} {cpu:>7.1f} {warm:>7.2f} {heap:>8} {most:>7.0f}"
    )
    if _LOOKUPS.value:
        compiles, seconds = tree.lookups(*options, *_OPTIONS.value, *targets)
        line += f" {compiles:>8} {1000 * seconds / compiles:>9.1f}"
    return line


def main(_arguments: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="scale-") as base:
        tree = Tree(Path(_TREE.value), Path(base), Path(_OUTPUT_ROOT.value or f"{base}/output"))
        heads = "  set  objects  actions  /object  cold s   cpu s  warm s     heap  RSS MB"
        print(heads + (" compiles ms/lookup" if _LOOKUPS.value else ""), flush=True)
        try:
            for name in _CHOSEN.value:
                print(measure(tree, name), flush=True)
        finally:
            tree.bazel("shutdown")


if __name__ == "__main__":
    app.run(main)
