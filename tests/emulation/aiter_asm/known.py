# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The emulator's findings of AITER's kernels that change no result, as known_findings.py has those
of Composable Kernel's."""

from __future__ import annotations

import functools
from pathlib import Path

from kernels.aiter_asm import table


@functools.cache
def _objects() -> list[table.AsmObject]:
    folder = Path(table.__file__).parent
    files = ("forward.toml", "backward.toml", "defects.toml")
    return table.read(*((folder / file).read_text("utf-8") for file in files))


def signatures(kernel: str) -> set[str]:
    """Of a kernel, named SYMBOL.ARCH. Schedules of an object share their symbol."""
    return {
        signature
        for described in _objects()
        if f"{described.symbol}.{described.arch}" == kernel
        for defect in described.defects
        if not defect.changes_results
        for signature in defect.findings
    }
