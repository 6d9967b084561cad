# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Splits a module of several kernels into one module per kernel: what compile_group runs.

A kernel takes along the variables that it uses, and no other function: one that was not inlined
into it would be missing at its link, which says so.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

_EXTRACT = flags.DEFINE_string("extract", None, "llvm-extract", required=True)
_MODULE = flags.DEFINE_string("module", None, "optimised bitcode", required=True)
_OUT = flags.DEFINE_multi_string("out", None, "KERNEL.bc, to be written", required=True)

# A variable that clang puts into every unit of HIP, used or not: objects have it.
_UNIT_ID = "__hip_cuid_"


def main(_arguments: Sequence[str]) -> int:
    for out in map(Path, _OUT.value):
        command = [_EXTRACT.value, f"--func={out.stem}", f"--glob={_UNIT_ID}", _MODULE.value]
        got = subprocess.run([*command, "-o", str(out)], stderr=subprocess.PIPE, text=True)
        if got.returncode:
            print(f"{_MODULE.value}: no module of {out.stem}: {got.stderr}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    app.run(main)
