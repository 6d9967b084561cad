# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Program control: branches, waits, MODE, and instructions without effect."""

from __future__ import annotations

import numpy as np
import pytest

from gfxemu import decoder
from gfxemu.disassembler import LlvmMc
from gfxemu.errors import UnsupportedInstruction
from gfxemu.tests.bench import TOTAL, Bench, get_vector, make_wave, set_vector
from gfxemu.wave import BARRIER, DIVERGED, END, EXEC, VCC

# A branch of 2 skips the two instructions after it.
_BRANCHES = [
    "s_branch",
    "s_cbranch_scc0",
    "s_cbranch_scc1",
    "s_cbranch_vccz",
    "s_cbranch_vccnz",
    "s_cbranch_execz",
    "s_cbranch_execnz",
]
_MODE = [
    "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3",
    "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0",
    "s_setreg_b32 hwreg(HW_REG_MODE, 4, 4), s5",
    "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 3",
    "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 1",
]
_WAITS = [
    "s_waitcnt vmcnt(0)",
    "s_waitcnt lgkmcnt(0)",
    "s_waitcnt vmcnt(1) lgkmcnt(1)",
    "s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)",
]
_IDLE = ["s_nop 0", "s_nop 7", "s_sleep 1", "s_setprio 3", "v_nop"]
_LINES = [
    *(f"{b} 2" for b in _BRANCHES),
    "s_nop 1",
    "s_nop 2",
    "s_nop 3",
    *_MODE,
    *_WAITS,
    *_IDLE,
    "s_endpgm",
    "s_barrier",
    "v_add_f32 v10, v1, v2",
    "s_getpc_b64 s[6:7]",
    "s_add_u32 s6, s6, lit(0x1)",
]
BENCH = Bench(_LINES)
TESTED = BENCH.names


def _target(line: str) -> int:
    program = BENCH.program()
    index = next(i for i, x in enumerate(program.instructions) if x.text == line)
    return index + 3


def test_unconditional_branch() -> None:
    assert BENCH.run("s_branch 2", make_wave()) == _target("s_branch 2")


def test_program_counter() -> None:
    """The next instruction's address, in the code object as it lies in memory."""
    program = BENCH.program()
    after = next(i for i in program.instructions if i.text.startswith("s_add_u32 s6"))
    wave = make_wave()
    wave.group.image = 0x7000_0000_0000
    BENCH.run("s_getpc_b64 s[6:7]", wave)
    assert wave.read64(6) == 0x7000_0000_0000 + after.address
    BENCH.run("s_add_u32 s6, s6, lit(0x1)", wave)
    assert wave.read32(6) == after.address + 1


@pytest.mark.parametrize("polarity", [0, 1])
def test_branch_on_scc(polarity: int) -> None:
    line = f"s_cbranch_scc{polarity} 2"
    for scc in (0, 1):
        wave = make_wave()
        wave.scc = scc
        assert BENCH.run(line, wave) == (_target(line) if scc == polarity else None)
        wave.scc = np.array([bool(scc)] * 2)
        assert BENCH.run(line, wave) == (_target(line) if scc == polarity else None)
    wave = make_wave()
    wave.scc = np.array([True, False])
    assert BENCH.run(line, wave) == DIVERGED
    assert wave.diverged.tolist() == [bool(polarity), not polarity]


@pytest.mark.parametrize(("name", "register"), [("vcc", VCC), ("exec", EXEC)])
@pytest.mark.parametrize("polarity", ["z", "nz"])
def test_branch_on_mask(name: str, register: int, polarity: str) -> None:
    line = f"s_cbranch_{name}{polarity} 2"
    for value in (0, 1, 1 << 63, 5 << 30):
        for as_mask in (False, True):
            wave = make_wave()
            if as_mask:
                wave.write_mask(register, wave.unpack(value))
            else:
                wave.write64(register, value)
            taken = (value != 0) == (polarity == "nz")
            assert BENCH.run(line, wave) == (_target(line) if taken else None)
    wave = make_wave()
    wave.write64(register, np.array([0, 1 << 40], np.uint64))
    assert BENCH.run(line, wave) == DIVERGED


def test_end_and_barrier() -> None:
    assert BENCH.run("s_endpgm", make_wave()) == END
    assert BENCH.run("s_barrier", make_wave()) == BARRIER


@pytest.mark.parametrize("line", _IDLE)
def test_no_effect(line: str) -> None:
    wave = make_wave()
    before = wave.regs.copy()
    assert BENCH.run(line, wave) is None
    assert (wave.regs == before).all()


@pytest.mark.parametrize("line", _WAITS)
def test_waits_with_nothing_pending(line: str) -> None:
    assert BENCH.run(line, make_wave(late=True)) is None


def test_wait_selects_its_counter() -> None:
    """The tests of loads show that results land; here, that each counter reaches its own queue."""
    from gfxemu.pending import RETIRED

    for line, left in (
        ("s_waitcnt vmcnt(0)", (0, 3)),
        ("s_waitcnt lgkmcnt(0)", (3, 0)),
        ("s_waitcnt vmcnt(1) lgkmcnt(1)", (1, 1)),
        ("s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)", (0, 0)),
    ):
        wave = make_wave(late=True)
        wave.vm_queue, wave.lgkm_queue = [RETIRED] * 3, [RETIRED] * 3
        BENCH.run(line, wave)
        assert (len(wave.vm_queue), len(wave.lgkm_queue)) == left


def test_mode_switches_denormals() -> None:
    wave = make_wave(flush=True)
    set_vector(wave, 1, [0x00400000] * TOTAL)
    set_vector(wave, 2, [0x00000001] * TOTAL)

    def add() -> int:
        BENCH.run("v_add_f32 v10, v1, v2", wave)
        return get_vector(wave, 10)[0]

    assert add() == 0
    BENCH.run(_MODE[0], wave)
    assert add() == 0x00400001
    BENCH.run(_MODE[1], wave)
    assert add() == 0
    wave.write32(5, 0xF)
    BENCH.run(_MODE[2], wave)
    assert add() == 0x00400001


def test_modes_that_are_not_modelled() -> None:
    wave = make_wave()
    for line, message in ((_MODE[3], "rounding"), (_MODE[4], "inputs or results")):
        with pytest.raises(UnsupportedInstruction, match=message):
            BENCH.run(line, wave)
    wave.write32(5, 0x3)
    with pytest.raises(UnsupportedInstruction, match="float16"):
        BENCH.run(_MODE[2], wave)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "v_cndmask_b32_dpp v0, v1, v2, vcc quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf",
            "v_cndmask_b32 is not implemented in its dpp",
        ),
        ("s_memtime s[0:1]", "opcode s_memtime is not implemented: 0x0040: s_memtime"),
        ("v_add_u32_e64 v0, v1, v2 clamp", "modifier clamp is not implemented for v_add_u32"),
        ("s_getreg_b32 s0, hwreg(HW_REG_HW_ID)", "s_getreg_b32"),
        ("v_add_u32 v200, v1, v2", "beyond the kernel's 128 registers"),
        ("s_branch 1000", "branch into nowhere"),
    ],
)
def test_what_is_not_known_is_named(line: str, message: str) -> None:
    decoder.load_all()
    tool = LlvmMc.from_environment()
    listing = tool.disassemble(tool.assemble([line], "gfx942"), "gfx942", 0x40)
    with pytest.raises(UnsupportedInstruction) as error:
        decoder.decode(listing, "gfx942", 128, 64)
    assert message in str(error.value)
