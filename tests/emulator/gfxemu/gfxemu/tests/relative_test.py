# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Registers by number: which register is read, what M0 becomes, what is refused, and in step."""

from __future__ import annotations

import pytest

from gfxemu import Checks, EmulationError
from gfxemu.errors import UnsupportedInstruction
from gfxemu.relative import OPCODES
from gfxemu.tests.assembly import EPILOGUE, PROLOGUE, Launch, program
from gfxemu.tests.bench import (
    MASKS,
    TOTAL,
    WORKGROUPS,
    Bench,
    active,
    get_vector,
    make_wave,
    set_vector,
)
from gfxemu.wave import M0, Wave

_ON, _OFF = "s_set_gpr_idx_on s20, gpr_idx(SRC0)", "s_set_gpr_idx_off"
_ADD, _MOVE = "v_add_u32 v10, v40, v3", "v_mov_b32 v10, v40"
_SCALAR = "v_add_u32 v11, s3, v3"
BENCH = Bench([_ON, _ADD, _MOVE, _SCALAR, _OFF, "v_add_u32 v10, v41, v3"])


def TESTED() -> set[str]:
    return BENCH.names()


def test_every_opcode_is_tested() -> None:
    assert {f"{name}_relative" for name in OPCODES} <= TESTED()
    assert BENCH.name("v_add_u32 v10, v41, v3") == "v_add_u32"  # after s_set_gpr_idx_off


def _wave(exec_mask: int, index: int) -> Wave:
    wave = make_wave(exec_mask)
    for register in range(40, 50):
        set_vector(wave, register, [register * 1000 + i for i in range(TOTAL)])
    set_vector(wave, 3, [7 * i for i in range(TOTAL)])
    set_vector(wave, 10, [5] * TOTAL)
    wave.write32(20, index)
    wave.write32(M0, 0xABCD_EF12)
    return wave


@pytest.mark.parametrize("exec_mask", MASKS)
@pytest.mark.parametrize("index", [0, 1, 9, 0xFFFF_FF04])
def test_s0_lies_behind(index: int, exec_mask: int) -> None:
    """Of the index 8 bits count; M0 keeps what lies beside them and the four of the operands."""
    number = 40 + index % 0x100
    for line, addend in ((_ADD, 7), (_MOVE, 0)):
        wave = _wave(exec_mask, index)
        BENCH.run(_ON, wave)
        assert wave.read32(M0) == 0xABCD_1F00 | index % 0x100
        BENCH.run(line, wave)
        BENCH.run(_OFF, wave)
        for lane, on in enumerate(active(exec_mask)):
            wanted = number * 1000 + lane + addend * lane if on else 5
            assert get_vector(wave, 10)[lane] == wanted


def test_a_scalar_source_has_no_number() -> None:
    wave = _wave(MASKS[0], 4)
    wave.write32(3, 100)
    BENCH.run(_ON, wave)
    BENCH.run(_SCALAR, wave)
    assert get_vector(wave, 11) == [100 + 7 * i for i in range(TOTAL)]


def test_a_register_that_there_is_not() -> None:
    wave = _wave(MASKS[0], 0)
    wave.write32(M0, 255)
    short = program((_ON, _MOVE, _OFF))
    with pytest.raises(EmulationError, match="v295 is beyond the kernel's 64 vector registers"):
        short.functions[1](wave)


@pytest.mark.parametrize(("lines", "message"), [
    (("s_set_gpr_idx_on s20, gpr_idx(DST)", _OFF), "other operands than S0"),
    ((_ON, "s_branch 0", _OFF), "after s_set_gpr_idx_on.*s_branch"),
    ((_ON, "v_xor_b32 v1, v2, v3", _OFF), "v_xor_b32 is not implemented in its relative form"),
    ((_ON, "v_mov_b32_dpp v1, v2 row_shl:1 row_mask:0xf bank_mask:0xf", _OFF), "another form"),
    (("s_branch 1", _ON, _MOVE, _OFF), "branch into nowhere"),
])  # fmt: skip
def test_what_is_refused(lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(UnsupportedInstruction, match=message):
        program(lines)


# The index differs between waves, or between workgroups.
@pytest.mark.parametrize("source", ["v_readfirstlane_b32 s20, v5", "s_and_b32 s20, s2, 1"])
def test_in_step(source: str) -> None:
    lines = (
        *PROLOGUE, "v_lshrrev_b32 v5, 6, v0", "v_mul_u32_u24 v8, 3, v2", "v_mul_u32_u24 v9, 5, v2",
        "v_mul_u32_u24 v10, 7, v2", "v_mul_u32_u24 v11, 9, v2", source, _ON,
        "v_add_u32 v4, v8, v2", _OFF, *EPILOGUE,
    )  # fmt: skip
    one, other = (Launch(lines, in_step=x, schedule="sliced:8", checks=Checks()) for x in (1, 0))
    assert one.report.in_step and not other.report.in_step
    factors = (3, 5, 7, 9)
    by_wave = "readfirstlane" in source
    wanted = [
        x * (1 + factors[i % 256 // 64 if by_wave else i // 256 % WORKGROUPS])
        for i, x in enumerate(one.input.tolist())
    ]
    assert one.output.tolist() == wanted
    assert other.output.tolist() == wanted
