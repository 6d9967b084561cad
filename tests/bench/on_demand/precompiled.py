# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Precompiled headers in compiles of single kernels: their cost, and that they change no byte.

    ./bazelw run //tests/bench/on_demand:precompiled [-- --only=REGEX]

Of each kernel of `smoke` on gfx942 that has a sibling, which is the same but for its mask, or is of
groups instead of batches, the compile kit's clang makes

    header   a precompiled header of what the kernel's source includes
    shape    one of the whole source: the kernel's body is in it, with all its templates, but as a
             function that nothing calls

and compiles the sibling plainly, and with each of them. Processor time of all processes is printed,
user and system, and the size of both headers. The sibling's objects must be the same, byte for
byte, and the kernel's own by both headers the code object of the build; otherwise their name and an
exit status of 1 say so.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import app, flags

from tests.bench.compiling import graph, peers
from tests.bench.on_demand import costs

_TREE = flags.DEFINE_string(
    "tree", os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."), "the source tree"
)
_KIT = flags.DEFINE_string("kit", None, "the compile kit", required=True)
_SPECS = flags.DEFINE_string("specs", None, "specs, each beside its code object", required=True)
_ONLY = flags.DEFINE_string("only", "", "kernels whose name has this (a regex)")

_KERNEL = re.compile(r'extern "C" __global__ __launch_bounds__\([^)]*\) void\s+\w+\(')
# Words of a name, and those of its sibling's.
_SIBLINGS = (("_mask_", "_nmask_"), ("_nmask_", "_mask_"), ("_batch_", "_group_"))


@dataclasses.dataclass(frozen=True)
class Measured:
    """Processor seconds, of a header and of compiles of a sibling; bytes of a header."""

    name: str
    plain: float
    header: float
    header_size: int
    with_header: float
    shape: float
    shape_size: int
    with_shape: float


def includes(source: str) -> str:
    """The lines of a source that include headers. Raises ValueError where it has none."""
    found = [line for line in source.splitlines() if line.startswith("#include ")]
    if not found:
        raise ValueError("a source without headers has nothing to precompile")
    return "\n".join([*found, ""])


def shape(source: str) -> str:
    """The source as a header: names of its own, and its kernel a function that is not emitted.

    Raises ValueError where the kernel is not as upstream's generator and ours write it.
    """
    before, included, after = source.rpartition("#include ")
    name, _, body = after.partition("\n")
    body, count = _KERNEL.subn("inline __device__ void body(", body if included else "")
    if count != 1:
        raise ValueError(f"a source with {count} kernels behind its headers, instead of 1")
    return f"{before}{included}{name}\nnamespace precompiled {{\n{body}}}\n"


def sibling(source: Path) -> Path | None:
    """A source beside this one that differs in one trait; None: there is none."""
    for word, other in _SIBLINGS:
        path = source.with_name(source.name.replace(word, other))
        if path != source and path.exists():
            return path
    return None


def table(measured: Sequence[Measured]) -> str:
    """A row for each kernel."""
    lines = [
        f"{'':<40} |{'plain':>7} |{'header':>22} |{'shape':>22}",
        f"{'':<40} |{'':>7} |{'made':>7} {'MB':>6} {'with':>7} |{'made':>7} {'MB':>6} {'with':>7}",
    ]
    lines += [
        f"{m.name[:40]:<40} |{m.plain:>7.1f} |{m.header:>7.1f} {m.header_size / 1e6:>6.1f} "
        f"{m.with_header:>7.1f} |{m.shape:>7.1f} {m.shape_size / 1e6:>6.1f} {m.with_shape:>7.1f}"
        for m in measured
    ]
    return "\n".join(lines)


class Compiler:
    """The kit's, by the flags of a spec."""

    def __init__(self, kit: Path, spec: Mapping[str, Any], folder: Path) -> None:
        self._kit = kit
        self._spec = spec
        self._folder = folder

    def _run(self, words: Sequence[str], out: Path) -> float:
        program = str(self._kit / "external/llvm/bin/clang++")
        command = [program, *words, f"--offload-arch={self._spec['arch']}"]
        cost, _ = costs.first_use(command, cwd=self._kit)
        if not out.exists():
            raise ValueError(f"clang wrote no {out.name}: {command}")
        return cost.cpu

    def precompile(self, text: str, name: str, *words: str) -> tuple[Path, float]:
        """A header of this text, and its processor seconds."""
        source, made = self._folder / f"{name}.h", self._folder / f"{name}.pch"
        source.write_text(text)
        to_clang = ["-emit-pch", "-fno-pch-timestamp", *words, "-o", str(made)]
        # The driver knows precompiled headers of no HIP: clang itself is told.
        passed = [word for option in to_clang for word in ("-Xclang", option)]
        own = peers.without_options_of_ours(self._spec["flags"])
        return made, self._run([*own, "-fsyntax-only", *passed, str(source)], made)

    def compile(self, source: Path, name: str, header: Path | None = None) -> tuple[str, float]:
        """The sha256 of a source's object, and its processor seconds."""
        out = self._folder / f"{name}.hsaco"
        taken = ["-Xclang", "-include-pch", "-Xclang", str(header)] if header else []
        words = [*self._spec["flags"], *taken, "-c", str(source), "-o", str(out)]
        seconds = self._run(words, out)
        return hashlib.sha256(out.read_bytes()).hexdigest(), seconds


def measure(kit: Path, spec: Path, source: Path, other: Path) -> Measured:
    """Raises ValueError where a header changes an object."""
    expected = hashlib.sha256(spec.with_suffix(".hsaco").read_bytes()).hexdigest()
    text = source.read_text()
    with tempfile.TemporaryDirectory() as folder:
        compiler = Compiler(kit, json.loads(spec.read_bytes()), Path(folder))
        header, header_seconds = compiler.precompile(includes(text), "header")
        whole, shape_seconds = compiler.precompile(
            shape(text), "shape", "-fpch-instantiate-templates"
        )
        plain, plain_seconds = compiler.compile(other, "plain")
        seconds = {}
        for made in (header, whole):
            own, _ = compiler.compile(source, f"own.{made.stem}", made)
            its, seconds[made] = compiler.compile(other, f"sibling.{made.stem}", made)
            if (own, its) != (expected, plain):
                raise ValueError(f"{spec.stem}: another object with a precompiled {made.stem}")
        return Measured(
            spec.stem,
            plain_seconds,
            header_seconds,
            header.stat().st_size,
            seconds[header],
            shape_seconds,
            whole.stat().st_size,
            seconds[whole],
        )


def main(arguments: Sequence[str]) -> int:
    if arguments[1:]:
        raise app.UsageError(f"what is {arguments[1]!r}? See --help")
    measured = []
    try:
        specs = costs.chosen([Path(path) for path in _SPECS.value.split()], _ONLY.value)
        # The kit was made of these sources, so that they are there.
        external = graph.Graph(Path(_TREE.value), "").external()
        for spec in specs:
            name = spec.stem.removesuffix(".gfx942")
            [source] = external.glob(f"*ck_fmha/*/*/{name}.cpp")
            other = sibling(source)
            if other is None:
                print(f"{name}: has no sibling")
                continue
            measured.append(measure(Path(_KIT.value).absolute(), spec, source, other))
            print(table(measured[-1:]).splitlines()[-1], flush=True)
    except (ValueError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"\n{table(measured)}")
    return 0


if __name__ == "__main__":
    app.run(main)
