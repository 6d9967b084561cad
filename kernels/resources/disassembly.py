# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The instructions of a kernel and its loops, from llvm-objdump's output."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import re
from collections.abc import Iterable, Sequence

# "\ts_cbranch_scc1 65416   // 000000001CE8: BF85FF88 <kernel+0x2e8>". The bytes and the target of
# a branch stand behind the comment sign; other lines are labels and headings.
_INSTRUCTION = re.compile(
    r"\t(?P<text>\S.*?)\s*// (?P<address>[0-9A-F]+): [0-9A-F ]+(?:<(?P<target>[^>]+)>)?$"
)
# "0000000000001a00 g     F .text\t0000000000001bb0 .protected kernel"
_FUNCTION = re.compile(
    r"(?P<address>[0-9a-f]{16}) .{6}F \.text\t(?P<size>[0-9a-f]{16}) (?:\.\w+ )?(?P<symbol>\S+)$"
)
_ENDS = ("s_endpgm", "s_endpgm_saved")


class DisassemblyError(Exception):
    """No disassembly of the kernel, or one that goes where this cannot follow."""


@dataclasses.dataclass(frozen=True)
class Instruction:
    """target: where a branch goes to; None for any other instruction."""

    address: int
    text: str
    target: int | None = None

    @property
    def name(self) -> str:
        return self.text.split(maxsplit=1)[0]

    @property
    def falls_through(self) -> bool:
        return self.name != "s_branch" and self.name not in _ENDS


def parse(listing: str, symbol: str) -> list[Instruction]:
    """The instructions of a kernel, of the output of `llvm-objdump -d -t`. Raises DisassemblyError.

    The symbol table tells where it ends: behind it the section is filled up with s_nop.
    """
    found: list[Instruction] = []
    bounds = range(0)
    for line in listing.splitlines():
        if match := _FUNCTION.match(line):
            if match["symbol"] == symbol:
                start = int(match["address"], 16)
                bounds = range(start, start + int(match["size"], 16))
        elif (match := _INSTRUCTION.match(line)) and int(match["address"], 16) in bounds:
            found.append(_instruction(match, symbol, bounds.start))
    if not found:
        raise DisassemblyError(f"{symbol}: no function of that name in the code object")
    return found


def _instruction(match: re.Match[str], symbol: str, start: int) -> Instruction:
    text, address = match["text"], int(match["address"], 16)
    if text.startswith(("s_setpc", "s_swappc", "s_call", "s_cbranch_i_fork", "s_cbranch_g_fork")):
        raise DisassemblyError(f"{symbol}: {text}: a jump whose target is computed or a call")
    if not text.startswith(("s_branch", "s_cbranch")):
        return Instruction(address, text)
    name, _, offset = (match["target"] or "").partition("+")
    if name != symbol:
        raise DisassemblyError(f"{symbol}: {text}: a branch to {name or 'nowhere known'}")
    return Instruction(address, text, start + int(offset or "0", 16))


@dataclasses.dataclass(frozen=True)
class Loop:
    """A natural loop: instructions in the order of their addresses, inner loops' included."""

    head: int
    instructions: tuple[Instruction, ...]

    def count(self, prefixes: str | tuple[str, ...]) -> int:
        return count(self.instructions, prefixes)


def count(instructions: Iterable[Instruction], prefixes: str | tuple[str, ...]) -> int:
    """The number of instructions whose names start so."""
    return sum(instruction.name.startswith(prefixes) for instruction in instructions)


def loops(instructions: Sequence[Instruction]) -> list[Loop]:
    """The loops of a kernel, by the addresses of their heads.

    A branch back to a block that every path to it goes through closes a loop; branches to the same
    block close the same loop.
    """
    blocks, successors = _blocks(instructions)
    dominators = _dominators(successors)
    predecessors = _reversed(successors)
    bodies: dict[int, set[int]] = {}
    for block, nexts in enumerate(successors):
        for head in nexts:
            if block in dominators and head in dominators[block]:
                bodies.setdefault(head, {head}).update(_reaching(block, head, predecessors))
    return [
        Loop(
            blocks[head][0].address,
            tuple(instruction for block in sorted(body) for instruction in blocks[block]),
        )
        for head, body in sorted(bodies.items())
    ]


def innermost(found: Sequence[Loop]) -> list[Loop]:
    """The loops that hold no other."""
    heads = {loop.head for loop in found}
    return [
        loop
        for loop in found
        if not any(i.address in heads - {loop.head} for i in loop.instructions)
    ]


def _blocks(
    instructions: Sequence[Instruction],
) -> tuple[list[list[Instruction]], list[list[int]]]:
    """Basic blocks in the order of their addresses, and the blocks that follow each."""
    leaders = {instructions[0].address}
    leaders.update(i.target for i in instructions if i.target is not None)
    for instruction, following in itertools.pairwise(instructions):
        if instruction.target is not None or not instruction.falls_through:
            leaders.add(following.address)
    starts = sorted(leaders)
    blocks: list[list[Instruction]] = [[] for _ in starts]
    for instruction in instructions:
        blocks[bisect.bisect_right(starts, instruction.address) - 1].append(instruction)
    successors: list[list[int]] = []
    for index, block in enumerate(blocks):
        if not block or block[0].address != starts[index]:
            raise DisassemblyError(f"a branch to {starts[index]:#x}, where no instruction is")
        last = block[-1]
        nexts = [] if last.target is None else [starts.index(last.target)]
        if last.falls_through and index + 1 < len(blocks):
            nexts.append(index + 1)
        successors.append(nexts)
    return blocks, successors


def _reversed(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    predecessors: list[list[int]] = [[] for _ in successors]
    for block, nexts in enumerate(successors):
        for following in nexts:
            predecessors[following].append(block)
    return predecessors


def _dominators(successors: Sequence[Sequence[int]]) -> dict[int, set[int]]:
    """Reachable block -> the blocks that every path from the first block to it goes through."""
    reachable = _reaching(0, None, successors)
    predecessors = _reversed(successors)
    dominators = {block: set(reachable) for block in reachable}
    dominators[0] = {0}
    changed = True
    while changed:
        changed = False
        for block in sorted(reachable - {0}):
            above = (dominators[p] for p in predecessors[block] if p in reachable)
            found = {block} | set.intersection(*above)
            if found != dominators[block]:
                dominators[block] = found
                changed = True
    return dominators


def _reaching(start: int, stop: int | None, edges: Sequence[Sequence[int]]) -> set[int]:
    """The blocks that are reached from one over edges, itself included, never beyond `stop`."""
    seen = {start}
    waiting = [] if start == stop else [start]
    while waiting:
        for other in edges[waiting.pop()]:
            if other not in seen:
                seen.add(other)
                if other != stop:
                    waiting.append(other)
    return seen
