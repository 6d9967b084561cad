# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes a launch table without code objects: what makes kernel arguments, and nothing else.

It changes when the instances do, not when their code does, so that the results of verified code
objects outlive the compilation of others.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from kernels.private.launch_table import table_rows, table_source


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variant-set", required=True)
    parser.add_argument("--instances", type=Path, action="append", required=True)
    parser.add_argument("--source", type=Path, required=True)
    options = parser.parse_args()
    documents = [json.loads(path.read_text("utf-8")) for path in options.instances]
    rows = table_rows(documents, options.variant_set)
    options.source.write_text(table_source(rows, {}, [], options.variant_set), "utf-8")


if __name__ == "__main__":
    main()
