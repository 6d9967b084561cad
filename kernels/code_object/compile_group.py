# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Compiles the kernels of a group together, to one optimised module each: the program of
compile_group.

    compile_group.py --extract=llvm-extract --unit=GROUP/unit.bc --out=GROUP/KERNEL.bc ... \\
        --source=KERNEL.cpp ... -- CLANG ... -o GROUP/unit.bc GROUP.cpp

The compile, of all behind `--`, writes the unit; llvm-extract takes each kernel out of it. A
kernel takes along the variables that it uses, and no other function. One that calls a function of
the unit, which was not inlined since others call it, too, is compiled by itself.

Where the unit does not compile, each source is compiled by itself, so that one that is wrong takes
no other along. It has no module then, but a line that says so, which the compiler refuses to make
code of.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

_EXTRACT = flags.DEFINE_string("extract", None, "llvm-extract", required=True)
_UNIT = flags.DEFINE_string("unit", None, "the module that the compile writes", required=True)
_OUT = flags.DEFINE_multi_string("out", None, "KERNEL.bc, to be written", required=True)
_SOURCE = flags.DEFINE_multi_string("source", None, "of each kernel, in that order", required=True)

# A variable that clang puts into every unit of HIP, used or not: objects have it.
_UNIT_ID = "__hip_cuid_"

# A function that is missing in a module of text; those of LLVM's own become instructions.
_MISSING = re.compile(r"^declare\b.* @(?!llvm\.)\"?([\w.$]+)", re.MULTILINE)

# The ends of a program that gets no memory: killed by the system, or by its own abort.
_OUT_OF_MEMORY = "out of memory"
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)


class _NoMemory(Exception):
    """A compile that got no memory; what was said of it."""


def _compiles(command: Sequence[str]) -> bool:
    """Tells whether a compile succeeded. Raises _NoMemory where that is no matter of its source."""
    got = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace")
    print(got.stderr, end="", file=sys.stderr)
    said_so = _OUT_OF_MEMORY in got.stderr.lower()
    if got.returncode in _KILLED or (got.returncode and said_so):
        raise _NoMemory("ran out of memory" if said_so else "was killed")
    return not got.returncode


def _compile_alone(compile: Sequence[str]) -> int:
    """Compiles each source by itself. Returns an exit status: 0 where any compiles."""
    failed = []
    for source, out in zip(_SOURCE.value, map(Path, _OUT.value), strict=True):
        if not _compiles([*compile, "-o", str(out), source]):
            failed.append(out.stem)
            out.write_text(f"{out.stem} does not compile: its compile group says why\n", "utf-8")
    group = Path(_UNIT.value).parent.name
    alone = f"the other {len(_OUT.value) - len(failed)} of its group {group}, each by itself, do"
    print(f"{', '.join(failed)} does not compile; {alone}", file=sys.stderr)
    return 1 if len(failed) == len(_OUT.value) else 0


def _extract(compile: Sequence[str]) -> int:
    for source, out in zip(_SOURCE.value, map(Path, _OUT.value), strict=True):
        command = [_EXTRACT.value, f"--func={out.stem}", f"--glob={_UNIT_ID}", _UNIT.value]
        for arguments in ([*command, "-o", str(out)], [*command, "-S", "-o", "-"]):
            got = subprocess.run(arguments, capture_output=True, text=True)
            if got.returncode:
                print(f"{_UNIT.value}: no module of {out.stem}: {got.stderr}", file=sys.stderr)
                return 1
        if missing := _MISSING.search(got.stdout):
            print(f"{out.stem} calls {missing[1]}: it is compiled by itself", file=sys.stderr)
            if not _compiles([*compile, "-o", str(out), source]):
                return 1
    return 0


def main(arguments: Sequence[str]) -> int:
    *compile, _, unit, source = arguments[1:]
    try:
        if _compiles([*compile, "-o", unit, source]):
            return _extract(compile)
        return _compile_alone(compile)
    except _NoMemory as end:
        group = Path(_UNIT.value).parent.name
        print(
            f"{group}: the compile of {len(_OUT.value)} kernels together {end}. Free some memory, "
            "let fewer run at once (--jobs=1), or have each kernel compiled by itself, in less at "
            "a time: --//kernels/ck_fmha:shortcuts=none",
            file=sys.stderr,
        )
        return 1
    finally:
        Path(_UNIT.value).unlink(missing_ok=True)


if __name__ == "__main__":
    app.run(main)
