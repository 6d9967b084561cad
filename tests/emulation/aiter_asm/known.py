# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The emulator's findings of AITER's kernels that come to no harm as the library launches them, and
which of its checks they are not made for. known_findings.py has those of Composable Kernel's."""

from __future__ import annotations

import functools
from pathlib import Path

from kernels.aiter_asm import table


@functools.cache
def _objects() -> dict[str, list[table.AsmObject]]:
    """By SYMBOL.ARCH. Schedules of an object share their symbol."""
    folder = Path(table.__file__).parent
    files = ("forward.toml", "backward.toml", "defects.toml")
    found: dict[str, list[table.AsmObject]] = {}
    for described in table.read(*((folder / file).read_text("utf-8") for file in files)):
        found.setdefault(f"{described.symbol}.{described.arch}", []).append(described)
    return found


def _is_harmless(defect: table.Defect, described: table.AsmObject) -> bool:
    """Rows are filled behind group mode's kernels; a batch without keys is never launched."""
    filled = defect.avoided_by == "filled_rows" and described.mode == "group"
    return filled or not defect.changes_results


def signatures(kernel: str) -> set[str]:
    """Of a kernel, named SYMBOL.ARCH."""
    return {
        signature
        for described in _objects().get(kernel, ())
        for defect in described.defects
        if _is_harmless(defect, described)
        for signature in defect.findings
    }


def takes_turns(kernel: str) -> bool:
    """Whether the halves of its workgroups take turns, at barriers of their own."""
    return kernel in _objects()
