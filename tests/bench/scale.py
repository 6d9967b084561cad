# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The cost of loading and analysing a launch table, by the number of its kernel instances.

    ./bazelw run //tests/bench:scale [-- --tree=DIR --sets=NAME ... --libraries]

For each variant set below, in a copy of the tree that has no other large set: repositories are
fetched by a first run, the server is stopped, and `build --nobuild //kernels:launch_table` (or,
with --libraries, the set's cc_library targets) is timed for two archs: cold (a new server;
also its processor time, which other work on the machine does not lengthen as much) and again
(warm). Then come the actions behind that label (`aquery`), and the server's heap after a garbage
collection.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from tests.bench.workspace import Workspace

# The selections, by name: about 50, 500 and 5,000 instances, all of forward and backward, and of
# every direction.
_SETS = {
    "50": None,  # core
    "500": 'direction = "fwd"\nhead_size_qk = 192\n',
    "5000": 'direction = "bwd"\n',
    "all": 'direction = ["fwd", "bwd"]\n',
    "full": "",
}
_ARCHS = "gfx942,gfx950"

_TREE = flags.DEFINE_string(
    "tree", os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."), "the source tree"
)
_OUTPUT_ROOT = flags.DEFINE_string("output_root", None, "Bazel's, to keep fetched files")
_LIBRARIES = flags.DEFINE_bool("libraries", False, "the sets as cc_library targets")
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

    def server_cpu_seconds(self) -> float:
        """Processor time that the server has used since it started."""
        pid = self.bazel("info", "server_pid").strip()
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def counts(summary: str) -> tuple[int, int]:
    """All actions, and those that compile a code object, of `aquery --output=summary`."""
    actions = int(summary.split(" total actions", 1)[0].split()[-1])
    mnemonics = dict(
        line.strip().rsplit(": ", 1)
        for line in summary.split("Mnemonics:", 1)[1].split("\n\n", 1)[0].splitlines()
        if ": " in line
    )
    return actions, int(mnemonics["HipCodeObject"])


def variant_set_of(root: Path, name: str) -> str:
    """The set of the tree that is measured. Where the tree has none that is it, one is written."""
    selection = _SETS[name]
    if selection is None:
        return "core"
    folder = root / "kernels/variants"
    # An older tree has no such set, and no limit that all of its instances were above.
    if name == "full" and (folder / "full.toml").is_file():
        return "full"
    (folder / "scale.toml").write_text(f"[[variants]]\n{selection}")
    return "scale"


def measure(tree: Tree, name: str) -> str:
    """One line of the table."""
    variant_set = variant_set_of(tree.root, name)
    options = [f"--//kernels:variants={variant_set}", f"--//kernels:archs={_ARCHS}"]
    targets = ["//kernels:launch_table"]
    if _LIBRARIES.value:
        targets = [f"@variant_sets//{variant_set}:{arch}.library" for arch in _ARCHS.split(",")]
    build = ["build", "--nobuild", *options, *targets]
    tree.bazel(*build)
    tree.bazel("shutdown")
    cold = tree.seconds(*build)
    cpu = tree.server_cpu_seconds()
    warm = tree.seconds(*build)
    heap = tree.bazel("info", "used-heap-size-after-gc").strip()
    # The counts are of the labels' own needs, code objects and rows, not the toolchains.
    wanted = f"deps(set({' '.join(targets)}))"
    listed = tree.bazel("aquery", *options, wanted, "--output=summary")
    actions, objects = counts(listed)
    return (
        f"{name:>5} {objects:>8} {actions:>8} {actions / objects:>8.1f} "
        f"{cold:>7.1f} {cpu:>7.1f} {warm:>7.2f} {heap:>8}"
    )


def main(_arguments: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="scale-") as base:
        tree = Tree(Path(_TREE.value), Path(base), Path(_OUTPUT_ROOT.value or f"{base}/output"))
        print("  set  objects  actions  /object  cold s   cpu s  warm s  heap", flush=True)
        try:
            for name in _CHOSEN.value:
                print(measure(tree, name), flush=True)
        finally:
            tree.bazel("shutdown")


if __name__ == "__main__":
    app.run(main)
