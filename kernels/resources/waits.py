# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Registers that are used while a load into them is under way."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kernels.resources.disassembly import Instruction

_MEMORY = re.compile(r"(?:buffer|global|flat|scratch)_(?:load|store|atomic)")
_VECTOR = re.compile(r"\b(?P<file>[va])(?:(?P<one>\d+)|\[(?P<first>\d+):(?P<last>\d+)\])(?!\w)")
_LEFT_UNDER_WAY = re.compile(r"\bvmcnt\((?P<count>\d+)\)")
# VM_CNT has six bits: an access beyond them is not issued before the oldest has come back.
_MOST_UNDER_WAY = 63


def _registers(text: str) -> set[tuple[str, int]]:
    return {
        (match["file"], number)
        for match in _VECTOR.finditer(text)
        for number in range(
            int(match["one"] or match["first"]), int(match["one"] or match["last"]) + 1
        )
    }


def _result(text: str) -> set[tuple[str, int]]:
    """The registers that an access to memory writes: none where its data goes to LDS."""
    name, _, operands = text.partition(" ")
    returns = "_load" in name or re.search(r"\b(?:sc0|glc)\b", operands)
    if not returns or "_lds_" in name or re.search(r"\blds\b", operands):
        return set()
    return _registers(operands.split(",")[0])


def early_uses(instructions: Iterable[Instruction]) -> list[Instruction]:
    """Those of gfx9 that read or write a vector register into which a load is under way.

    Such a register has what it held before, and what is written to it is overwritten when the load
    lands. Paths that fall through are followed, whole; branches are not. Loads return in order, so
    that one may write where one before it does.
    """
    under_way: list[set[tuple[str, int]]] = []
    found = []
    for instruction in instructions:
        text = instruction.text
        if instruction.name == "s_waitcnt":
            if match := _LEFT_UNDER_WAY.search(text):
                del under_way[: max(0, len(under_way) - int(match["count"]))]
            continue
        if not instruction.falls_through:
            under_way = []
            continue
        is_access = bool(_MEMORY.match(text))
        if is_access and len(under_way) == _MOST_UNDER_WAY:
            del under_way[0]
        result = _result(text) if is_access else set()
        used = _registers(text.partition(" ")[2])
        if is_access and result:
            used = _registers(text.partition(",")[2]) if "_load" in text else used
        if any(used & loaded for loaded in under_way):
            found.append(instruction)
        if is_access:
            under_way.append(result)
    return found
