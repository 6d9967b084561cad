# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The golden files: the resources of core's kernels, an architecture each."""

from __future__ import annotations

from collections.abc import Iterable

from tests.bench.machine_code.measured import RESOURCES, Measured, table

UPDATE = "./bazelw run --config=cache --//kernels:archs=gfx942,gfx950 //tests/bench:machine_code"


def golden_name(arch: str) -> str:
    return f"core.{arch}.txt"


def golden(measured: Iterable[Measured]) -> str:
    """The text of a golden file."""
    return (
        "# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0\n"
        "# What the kernels of core need; the columns are explained in README.md. Written by\n"
        f"#   {UPDATE} \\\n"
        "#     -- --golden\n" + table(measured, RESOURCES)
    )
