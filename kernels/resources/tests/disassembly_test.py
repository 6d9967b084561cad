# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Loops are found where they are, in any order of blocks; a line that is not understood is an
error."""

from __future__ import annotations

import pytest

from kernels.resources.disassembly import (
    DisassemblyError,
    Instruction,
    innermost,
    loops,
    parse,
)

_LISTING = """
k.hsaco:	file format elf64-amdgpu

SYMBOL TABLE:
0000000000000008 l       *ABS*	0000000000000000 kernel.num_vgpr
0000000000000100 g     F .text	0000000000000014 .protected kernel
0000000000000200 g     F .text	0000000000000004 other

Disassembly of section .text:

0000000000000100 <kernel>:
	s_load_dwordx4 s[28:31], s[2:3], 0x20          // 000000000100: C00A0701 00000020
	s_cbranch_scc1 65533  // 000000000108: BF85FFFD <kernel+0x0>
	s_cbranch_vccz 0          // 00000000010C: BF860000 <kernel+0x10>
	s_endpgm          // 000000000110: BF810000
	s_nop 0          // 000000000114: BF800000

0000000000000200 <other>:
	s_endpgm          // 000000000200: BF810000
"""


def _kernel(*lines: str) -> list[Instruction]:
    """Instructions of four bytes each; "name N" branches to the N-th where name is a branch."""
    return [
        Instruction(
            4 * index,
            line,
            4 * int(line.split()[1]) if line.startswith(("s_branch", "s_c")) else None,
        )
        for index, line in enumerate(lines)
    ]


def _names(instructions: tuple[Instruction, ...]) -> list[int]:
    return [instruction.address // 4 for instruction in instructions]


def test_a_listing_is_read_to_the_end_of_the_kernel_and_no_further() -> None:
    kernel = parse(_LISTING, "kernel")
    assert [(i.address, i.name, i.target) for i in kernel] == [
        (0x100, "s_load_dwordx4", None),
        (0x108, "s_cbranch_scc1", 0x100),
        (0x10C, "s_cbranch_vccz", 0x110),
        (0x110, "s_endpgm", None),
    ]
    assert [i.address for i in parse(_LISTING, "other")] == [0x200]


def test_a_symbol_that_is_not_there_is_named() -> None:
    with pytest.raises(DisassemblyError, match="absent: no function of that name"):
        parse(_LISTING, "absent")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("s_setpc_b64 s[30:31]          // 000000000110: BE801D1E", "a call"),
        ("s_branch 4     // 000000000110: BF820004 <other+0x0>", "a branch to other"),
        ("s_branch 4     // 000000000110: BF820004", "a branch to nowhere known"),
    ],
)
def test_what_leaves_the_kernel_is_refused(line: str, message: str) -> None:
    lines = _LISTING.splitlines()
    at = next(i for i, text in enumerate(lines) if "s_endpgm" in text)
    lines[at] = "\t" + line
    with pytest.raises(DisassemblyError, match=message):
        parse("\n".join(lines), "kernel")


def test_a_kernel_without_a_branch_back_has_no_loop() -> None:
    assert loops(_kernel("a", "s_cbranch_scc1 3", "b", "s_endpgm")) == []


def test_a_loop_has_its_instructions_and_no_others() -> None:
    (loop,) = loops(
        _kernel("a", "scratch_load", "b", "s_cbranch_scc1 1", "scratch_store", "s_endpgm")
    )
    assert _names(loop.instructions) == [1, 2, 3]
    assert loop.count("scratch_") == 1


def test_a_block_of_a_loop_may_lie_behind_the_end_of_the_kernel() -> None:
    # 1: to 5 or on; 2, 3: back to 1; 5: out of line, back to 2.
    kernel = _kernel(
        "a", "s_cbranch_scc1 5", "b", "s_cbranch_vccz 1", "s_endpgm", "c", "s_branch 2"
    )
    (loop,) = loops(kernel)
    assert _names(loop.instructions) == [1, 2, 3, 5, 6]


def test_two_branches_back_to_one_place_are_one_loop() -> None:
    (loop,) = loops(_kernel("a", "s_cbranch_scc1 0", "b", "s_cbranch_vccz 0", "s_endpgm"))
    assert _names(loop.instructions) == [0, 1, 2, 3]


def test_the_inner_loop_is_the_innermost_and_the_outer_one_holds_it() -> None:
    found = loops(_kernel("a", "b", "s_cbranch_scc1 1", "c", "s_cbranch_scc1 0", "s_endpgm"))
    assert [_names(loop.instructions) for loop in found] == [[0, 1, 2, 3, 4], [1, 2]]
    assert [loop.head for loop in innermost(found)] == [4]


def test_a_branch_into_the_middle_of_an_instruction_is_refused() -> None:
    kernel = [Instruction(0, "s_branch 9", 6), Instruction(4, "wide"), Instruction(12, "s_endpgm")]
    with pytest.raises(DisassemblyError, match="0x6, where no instruction is"):
        loops(kernel)
