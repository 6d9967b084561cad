# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The golden files: the resources of core's kernels, an arch each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kernels.archs.archs import ComputeUnit
from kernels.resources.measured import HEADINGS, RESOURCES, Measured, short_names, table

SET = "core"
UPDATE = "./bazelw run //kernels:resources -- --golden --archs=gfx942,gfx950"


def golden_name(arch: str) -> str:
    return f"{SET}.{arch}.txt"


def golden(measured: Iterable[Measured], units: Mapping[str, ComputeUnit]) -> str:
    """The text of a golden file."""
    ones = {one.instance: one for one in measured}
    names = short_names(ones)
    rows: list[list[object]] = [["", *(HEADINGS.get(column, column) for column in RESOURCES)]]
    for instance, one in sorted(ones.items()):
        columns = one.columns(units)
        rows.append([names[instance], *(columns[column] for column in RESOURCES)])
    return (
        "# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0\n"
        f"# The resources of the kernels of {SET}; README.md explains the columns. Written by\n"
        f"#   {UPDATE}\n" + table(rows)
    )
