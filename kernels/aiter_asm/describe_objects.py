# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the descriptions of AITER's objects: descriptions.py."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from kernels.aiter_asm import table
from kernels.aiter_asm.descriptions import describe, find
from kernels.aiter_asm.launch import read_shipped

_TABLES = flags.DEFINE_multi_string("table", None, "the table's files", required=True)
_OBJECTS = flags.DEFINE_multi_string("object", [], "CODE_OBJECT=OUT.json; OUT.spec is beside it")


def main(_arguments: Sequence[str]) -> int:
    objects = read_shipped(*(Path(path).read_text("utf-8") for path in _TABLES.value))
    for pair in _OBJECTS.value:
        code_object, out = pair.split("=")
        try:
            record, spec = describe(find(objects, code_object), Path(code_object).read_bytes())
        except table.TableError as error:
            print(error, file=sys.stderr)
            return 1
        Path(out).with_suffix(".spec").write_bytes(spec.canonical())
        Path(out).write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", "ascii")
    return 0


if __name__ == "__main__":
    app.run(main)
