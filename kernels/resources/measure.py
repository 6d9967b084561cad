# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the figures of one code object, as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from kernels.resources.disassembly import DisassemblyError
from kernels.resources.figures import ToolError, disassemble, figures
from kernels.resources.measured import Measured, machine_options

_CODE_OBJECT = flags.DEFINE_string("code_object", None, "the file", required=True)
_METADATA = flags.DEFINE_string("metadata", None, "describe.py's record of it", required=True)
_SPEC = flags.DEFINE_string("spec", None, "how it was made", required=True)
_OBJDUMP = flags.DEFINE_string("objdump", None, "llvm-objdump", required=True)
_MCA = flags.DEFINE_string("mca", None, "llvm-mca", required=True)
_OUT = flags.DEFINE_string("out", None, "the file to write", required=True)


def main(_arguments: Sequence[str]) -> int:
    metadata = json.loads(Path(_METADATA.value).read_bytes())
    instance, arch = metadata["instance"], metadata["arch"]
    if "kernel" not in metadata:
        print(
            f"{instance}, {arch}: it has {len(metadata['kernels'])} kernels; only code objects of "
            "one kernel are measured",
            file=sys.stderr,
        )
        return 1
    try:
        instructions = disassemble(Path(_CODE_OBJECT.value), instance, Path(_OBJDUMP.value))
        found = figures(instructions, arch, Path(_MCA.value))
    except (DisassemblyError, ToolError) as error:
        print(f"{instance}, {arch}: {error}", file=sys.stderr)
        return 1
    options = machine_options(json.loads(Path(_SPEC.value).read_bytes())["flags"])
    measured = Measured(instance, arch, options, metadata["kernel"], found)
    Path(_OUT.value).write_text(measured.serialised() + "\n", "ascii")
    return 0


if __name__ == "__main__":
    app.run(main)
