# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Makes machine code of a kernel's optimised IR with each choice of options, and measures it: the
program of tried.bzl.

    try_options.py --module=KERNEL.bc --choices=choices.json ... --out=KERNEL.tried.json -- \\
        CLANG FLAGS...

Options of code generation change no IR, so the kernel is compiled once for all of them.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from absl import app, flags

from kernels.code_object.metadata import MetadataError, kernel_record
from kernels.resources.disassembly import DisassemblyError
from kernels.resources.figures import (
    OutOfTimeError,
    ToolError,
    disassemble,
    figures,
    run,
)
from kernels.resources.measured import Measured

_MODULE = flags.DEFINE_string("module", None, "the optimised IR", required=True)
_CHOICES = flags.DEFINE_string("choices", None, "choices.json", required=True)
_INSTANCE = flags.DEFINE_string("instance", None, "the kernel's symbol", required=True)
_ARCH = flags.DEFINE_string("arch", None, "that it is compiled for", required=True)
_BLOCK_SIZE = flags.DEFINE_integer("block_size", None, "work-items of a workgroup", required=True)
_OBJDUMP = flags.DEFINE_string("objdump", None, "llvm-objdump", required=True)
_MCA = flags.DEFINE_string("mca", None, "llvm-mca", required=True)
_OUT = flags.DEFINE_string("out", None, "JSON, an entry for each choice", required=True)

# Of processor time. Most kernels take less than one. Some option with some kernel comes to no end
# in minutes, which no build has time for.
_MOST_SECONDS = 15


def choices(text: str) -> list[tuple[str, ...]]:
    """The choices of choices.json, each as its options."""
    document = json.loads(text)
    options = document["options"]
    return [tuple(options[letter] for letter in letters) for letters in document["choices"]]


class Machine:
    """Makes and measures machine code of one kernel."""

    def __init__(self, compile: Sequence[str], folder: Path):
        self._compile = compile
        self._object = folder / "kernel.hsaco"
        self._known: dict[str, Measured] = {}

    def measured(self, options: tuple[str, ...]) -> Measured:
        """Raises DisassemblyError, MetadataError, ToolError."""
        given = [flag for option in options for flag in ("-mllvm", option)]
        module = ["-x", "ir", _MODULE.value, "-o", str(self._object)]
        run([*self._compile, *given, *module], seconds=_MOST_SECONDS)
        data = self._object.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        instance, arch = _INSTANCE.value, _ARCH.value
        if digest not in self._known:
            record = kernel_record(data, instance, arch, _BLOCK_SIZE.value)
            instructions = disassemble(self._object, instance, Path(_OBJDUMP.value))
            found = figures(instructions, arch, Path(_MCA.value))
            self._known[digest] = Measured(instance, arch, options, record, found)
        known = self._known[digest]
        return Measured(instance, arch, options, known.kernel, known.figures)


def main(arguments: Sequence[str]) -> int:
    tried: list[dict[str, Any]] = []
    endless: list[set[str]] = []
    with tempfile.TemporaryDirectory(dir=Path(_OUT.value).parent) as folder:
        machine = Machine(arguments[1:], Path(folder))
        for options in choices(Path(_CHOICES.value).read_text("ascii")):
            if any(few <= {*options} for few in endless):
                tried.append({"options": options, "failed": "fewer of them come to no end"})
                continue
            try:
                tried.append(json.loads(machine.measured(options).serialised()))
            except (DisassemblyError, MetadataError, ToolError) as error:
                if not options:
                    # With none it compiles, or it is no kernel of the pool.
                    print(f"{_INSTANCE.value}, {_ARCH.value}: {error}", file=sys.stderr)
                    return 1
                if isinstance(error, OutOfTimeError):
                    endless.append({*options})
                tried.append({"options": options, "failed": f"{error}"[:500]})
    Path(_OUT.value).write_text(json.dumps(tried, indent=1, sort_keys=True) + "\n", "ascii")
    return 0


if __name__ == "__main__":
    app.run(main)
