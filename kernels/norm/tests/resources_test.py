# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The registers and the memory of the kernels of shapes.bzl, as the compiler tells them, against
the golden table of their arch."""

from __future__ import annotations

import json
import os
from pathlib import Path

GOLDEN = Path(os.environ["GOLDEN"])
RECORDS = [json.loads(Path(path).read_text("ascii")) for path in os.environ["METADATA"].split()]
COLUMNS = {
    "vgpr_count": "vgpr",
    "agpr_count": "agpr",
    "sgpr_count": "sgpr",
    "lds_size": "lds",
    "scratch_size": "scratch",
    "vgpr_spill_count": "vspill",
    "sgpr_spill_count": "sspill",
}
HEAD = """\
# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
# The resources of the kernels of shapes.bzl, a line each. Write it anew:
#   ./bazelw test --config=cache {target} \\
#       --test_env=UPDATE_GOLDENS=FOLDER --sandbox_writable_path=FOLDER
# and copy the file of that folder here; not a folder of /tmp, which each test has of its own.
"""


def table() -> str:
    rows = {
        f"{record['instance']} {symbol}": [str(kernel[name]) for name in COLUMNS]
        for record in RECORDS
        for symbol, kernel in record["kernels"].items()
    }
    width = max(map(len, rows))
    lines = [[" " * width, *COLUMNS.values()], *([name, *rows[name]] for name in sorted(rows))]
    text = [
        first.ljust(width) + "".join(column.rjust(8) for column in columns)
        for first, *columns in lines
    ]
    return HEAD.format(target=os.environ["TEST_TARGET"]) + "\n".join(text) + "\n"


def test_resources_are_the_golden_ones() -> None:
    made = table()
    if folder := os.environ.get("UPDATE_GOLDENS"):
        (Path(folder) / GOLDEN.name).write_text(made, "ascii")
    assert made == GOLDEN.read_text("ascii"), f"the head of {GOLDEN} says how to write it anew"


def test_nothing_is_spilled() -> None:
    spilling = {
        f"{record['instance']} {symbol}"
        for record in RECORDS
        for symbol, kernel in record["kernels"].items()
        if kernel["vgpr_spill_count"] or kernel["sgpr_spill_count"]
    }
    assert not spilling
