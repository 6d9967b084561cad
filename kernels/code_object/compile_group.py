# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Compiles the kernels of a group together, to one optimised module each: the program of
compile_group.

    compile_group.py --extract=llvm-extract --unit=GROUP/unit.bc --out=GROUP/KERNEL.bc ... -- CLANG

The compile, of all behind `--`, writes the unit; llvm-extract takes each kernel out of it. A
kernel takes along the variables that it uses, and no other function: one that was not inlined into
it would be missing at its link, which says so.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

_EXTRACT = flags.DEFINE_string("extract", None, "llvm-extract", required=True)
_UNIT = flags.DEFINE_string("unit", None, "the module that the compile writes", required=True)
_OUT = flags.DEFINE_multi_string("out", None, "KERNEL.bc, to be written", required=True)

# A variable that clang puts into every unit of HIP, used or not: objects have it.
_UNIT_ID = "__hip_cuid_"

# The ends of a program that gets no memory: killed by the system, or by its own abort.
_OUT_OF_MEMORY = "out of memory"
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)


def _compile(command: Sequence[str]) -> int:
    got = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace")
    print(got.stderr, end="", file=sys.stderr)
    said_so = _OUT_OF_MEMORY in got.stderr.lower()
    if got.returncode in _KILLED or (got.returncode and said_so):
        group = Path(_UNIT.value).parent.name
        end = "ran out of memory" if said_so else "was killed"
        print(
            f"{group}: the compile of {len(_OUT.value)} kernels together {end}. Free some memory, "
            "let fewer run at once (--jobs=1), or have each kernel compiled by itself, in less at "
            "a time and the same to the byte: --//kernels/ck_fmha:shortcuts=none",
            file=sys.stderr,
        )
    return got.returncode


def _extract() -> int:
    for out in map(Path, _OUT.value):
        command = [_EXTRACT.value, f"--func={out.stem}", f"--glob={_UNIT_ID}", _UNIT.value]
        got = subprocess.run([*command, "-o", str(out)], stderr=subprocess.PIPE, text=True)
        if got.returncode:
            print(f"{_UNIT.value}: no module of {out.stem}: {got.stderr}", file=sys.stderr)
            return 1
    return 0


def main(arguments: Sequence[str]) -> int:
    try:
        return 1 if _compile(arguments[1:]) else _extract()
    finally:
        Path(_UNIT.value).unlink(missing_ok=True)


if __name__ == "__main__":
    app.run(main)
