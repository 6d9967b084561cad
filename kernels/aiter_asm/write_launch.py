# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the rows of AITER's kernels, and the C++ header of their arguments: launch.py."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from kernels.aiter_asm import launch
from kernels.archs.archs import read_archs

_TABLES = flags.DEFINE_multi_string("table", None, "the table's files", required=True)
_ARCHS_FILE = flags.DEFINE_string("archs_file", None, "archs.json of @archs", required=True)
_ARCHS = flags.DEFINE_multi_string("arch", [], "those of the build")
_ROWS = flags.DEFINE_string("rows", None, "the rows, JSON", required=True)
_FORWARD = flags.DEFINE_string("forward_header", None, "forward's arguments, C++", required=True)
_BACKWARD = flags.DEFINE_string("backward_header", None, "backward's arguments", required=True)


def main(_arguments: Sequence[str]) -> None:
    objects = launch.read_shipped(*(Path(path).read_text("utf-8") for path in _TABLES.value))
    archs = read_archs(_ARCHS_FILE.value)
    rows = [launch.row(o, archs) for o in objects if o.arch in _ARCHS.value]
    Path(_ROWS.value).write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    for path, header, direction in (
        (_FORWARD.value, launch.forward_header, "forward"),
        (_BACKWARD.value, launch.backward_header, "backward"),
    ):
        Path(path).write_text(header(launch.of_direction(objects, direction)), "utf-8")


if __name__ == "__main__":
    app.run(main)
