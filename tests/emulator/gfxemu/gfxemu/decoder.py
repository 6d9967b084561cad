# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""From instructions to Python functions, once per kernel.

Every opcode has a builder, registered under its name without the encoding suffix. A builder
looks at the operands and modifiers once and returns the function that executes the instruction:
`function(wave)` returns None to continue, the index of the next instruction to jump, or END,
BARRIER or DIVERGED of wave.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from gfxemu import operands
from gfxemu.disassembler import Instruction
from gfxemu.errors import UnsupportedInstruction
from gfxemu.operands import Operand
from gfxemu.wave import Wave

Execute = Callable[[Wave], int | None]


@dataclasses.dataclass(frozen=True)
class Decoding:
    """The arguments of a builder: the instruction, its operands, and the program around it."""

    instruction: Instruction
    operands: tuple[Operand, ...]
    arch: str
    vgprs: int
    index_of: dict[int, int]  # address -> index

    @property
    def name(self) -> str:
        return self.instruction.name

    @property
    def pc(self) -> int:
        return self.instruction.index

    def destination(self, registers: int = 1) -> int:
        """Index of the first destination VGPR, after checking that all of them exist."""
        return self.vector_range(self.operands[0], registers)

    def vector_range(self, op: Operand, registers: int) -> int:
        if op.kind != "v" or op.index + registers > self.vgprs:
            raise UnsupportedInstruction(
                f"{op.text or op.kind!r} (+{registers}) is not among the kernel's "
                f"{self.vgprs} vector registers: {self.instruction!r}"
            )
        return op.index

    def jump(self, words: int) -> int:
        """The index of the instruction `words` dwords after this one."""
        target = self.instruction.address + 4 + 4 * words
        if target not in self.index_of:
            raise UnsupportedInstruction(f"branch into nowhere: {self.instruction!r}")
        return self.index_of[target]


Builder = Callable[[Decoding], Execute]
_BUILDERS: dict[str, Builder] = {}
# By encoding: sub-dword operands, operands of other lanes; and, though no encoding tells it,
# registers by number (mark_relative). All other encodings mean the same.
_FORMS: dict[str, dict[str, Builder]] = {"sdwa": {}, "dpp": {}, "relative": {}}


def opcodes(*names: str, form: str = "") -> Callable[[Builder], Builder]:
    """Register a builder for opcodes, or for their form "sdwa", "dpp" or "relative"."""
    table = _FORMS[form] if form else _BUILDERS

    def register(builder: Builder) -> Builder:
        for name in names:
            if name in table:
                raise ValueError(f"{name} has two implementations")
            table[name] = builder
        return builder

    return register


def implemented() -> list[str]:
    """All opcodes, those of other forms with their suffix."""
    return sorted([*_BUILDERS, *(f"{n}_{form}" for form, table in _FORMS.items() for n in table)])


def base_builder(name: str) -> Builder:
    """The builder of an opcode in its plain form."""
    return _BUILDERS[name]


@dataclasses.dataclass(frozen=True)
class Program:
    """A decoded kernel: functions and instructions side by side."""

    arch: str
    functions: list[Execute]
    instructions: list[Instruction]
    vgprs: int = 0
    accum_offset: int = 0
    instrumented: bool = False  # functions do more than execute: each may run once only


def replace(program: Program, index: int, text: str | None) -> Program:
    """The program with one instruction changed to `text`, or left out (None).

    Addresses stay as they are, so the new text may have any encoding.
    """
    old = program.instructions[index]
    functions, instructions = list(program.functions), list(program.instructions)
    instructions[index] = Instruction(text or "s_nop 0", old.address, old.size, index)
    if text and old.encoding == "relative":
        instructions[index].encoding = old.encoding
    functions[index] = _build(
        instructions[index], program.arch, program.vgprs, program.accum_offset,
        _targets(instructions),
    )  # fmt: skip
    return dataclasses.replace(program, functions=functions, instructions=instructions)


def mark_relative(instructions: Iterable[Instruction]) -> None:
    """Gives the instructions between s_set_gpr_idx_on and s_set_gpr_idx_off their form. Raises
    UnsupportedInstruction where that does not follow from their place: for a branch."""
    on = False
    for instruction in instructions:
        if instruction.name in ("s_set_gpr_idx_on", "s_set_gpr_idx_off"):
            on = instruction.name.endswith("on")
        elif on and not instruction.name.startswith("v_"):
            raise UnsupportedInstruction(f"after s_set_gpr_idx_on: {instruction!r}")
        elif on and instruction.encoding in _FORMS:
            raise UnsupportedInstruction(f"registers by number in another form: {instruction!r}")
        elif on:
            instruction.encoding = "relative"


def _targets(instructions: Iterable[Instruction]) -> dict[int, int]:
    """By address, the indices of instructions that a branch may lead to."""
    return {i.address: i.index for i in instructions if i.encoding != "relative"}


def decode(
    instructions: Iterable[Instruction], arch: str, vgprs: int, accum_offset: int
) -> Program:
    """Resolve every instruction. Raises UnsupportedInstruction naming opcode and address."""
    listing = list(instructions)
    mark_relative(listing)
    index_of = _targets(listing)
    functions = []
    for instruction in listing:
        functions.append(_build(instruction, arch, vgprs, accum_offset, index_of))
    return Program(arch, functions, listing, vgprs, accum_offset)


def _build(
    instruction: Instruction, arch: str, vgprs: int, accum_offset: int, index_of: dict[int, int]
) -> Execute:
    table = _FORMS.get(instruction.encoding, _BUILDERS)
    builder = table.get(instruction.name)
    if builder is None:
        form = f" in its {instruction.encoding} form" if instruction.encoding in _FORMS else ""
        raise UnsupportedInstruction(
            f"opcode {instruction.name} is not implemented{form}: {instruction!r} ({arch})"
        )
    try:
        parsed = tuple(
            operands.parse(text, accum_offset)
            for text in instruction.operands
            if not text.startswith(("hwreg(", "vmcnt(", "lgkmcnt(", "expcnt(", "gpr_idx("))
        )
        for op in parsed:
            if op.kind == "v" and op.index + op.count > vgprs:
                raise UnsupportedInstruction(f"{op.text} is beyond the kernel's {vgprs} registers")
        function = builder(Decoding(instruction, parsed, arch, vgprs, index_of))
        instruction.check_all_handled()
    except UnsupportedInstruction as error:
        if error.where is None:
            error.where = f"{instruction!r} ({arch})"
        raise
    return function


def load_all() -> None:
    """Import every module that registers opcodes."""
    from gfxemu import (  # noqa: F401
        control,
        dpp,
        lds,
        matrix,
        relative,
        scalar,
        sdwa,
        vector_float,
        vector_integer,
        vector_lanes,
        vector_memory,
    )
