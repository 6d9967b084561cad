# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Program control: SOPP instructions and the MODE register (CDNA3 ISA, "Program Control")."""

from __future__ import annotations

import re

from gfxemu.decoder import Decoding, Execute, opcodes
from gfxemu.errors import UnsupportedInstruction
from gfxemu.operands import constant_bits, scalar32
from gfxemu.pending import wait_lgkm, wait_vector_memory
from gfxemu.scalars import truth
from gfxemu.wave import BARRIER, END, EXEC, VCC, Wave

_COUNTER = re.compile(r"(vmcnt|lgkmcnt|expcnt)\((\d+)\)")
_HWREG = re.compile(r"hwreg\((\w+)(?:, (\d+), (\d+))?\)")


@opcodes("s_nop", "s_sleep", "s_setprio", "v_nop")
def _no_effect(d: Decoding) -> Execute:
    return lambda w: None


@opcodes("s_endpgm")
def _end(d: Decoding) -> Execute:
    return lambda w: END


@opcodes("s_getpc_b64")
def _program_counter(d: Decoding) -> Execute:
    """The address of the next instruction. Code and constants lie in memory as in the file."""
    to, following = d.operands[0].index, d.instruction.address + d.instruction.size
    return lambda w: w.write64(to, w.group.image + following)


@opcodes("s_barrier")
def _barrier(d: Decoding) -> Execute:
    return lambda w: BARRIER


@opcodes("s_waitcnt")
def _waitcnt(d: Decoding) -> Execute:
    text = " ".join([*d.instruction.operands, *d.instruction.flags()])
    if text == "0":
        text = "vmcnt(0) lgkmcnt(0)"
    counters = {name: int(count) for name, count in _COUNTER.findall(text)}
    if not counters:
        raise UnsupportedInstruction(f"s_waitcnt without a known counter: {d.instruction!r}")
    vm, lgkm = counters.get("vmcnt"), counters.get("lgkmcnt")

    def execute(w: Wave) -> None:
        if vm is not None and w.vm_queue:
            wait_vector_memory(w, vm)
        if lgkm is not None and w.lgkm_queue:
            wait_lgkm(w, lgkm)

    return execute


def _target(d: Decoding) -> int:
    words = int(d.instruction.operands[0], 0)
    return d.jump(words - 0x1_0000 if words >= 0x8000 else words)


@opcodes("s_branch")
def _branch(d: Decoding) -> Execute:
    target = _target(d)
    return lambda w: target


@opcodes("s_cbranch_scc0", "s_cbranch_scc1")
def _branch_scc(d: Decoding) -> Execute:
    target, pc = _target(d), d.pc
    if d.name.endswith("1"):
        return lambda w: w.decide(w.scc, target, pc)

    def execute(w: Wave) -> int | None:
        scc = w.scc
        return w.decide(1 - scc if type(scc) is int else ~scc, target, pc)

    return execute


@opcodes("s_cbranch_vccz", "s_cbranch_vccnz", "s_cbranch_execz", "s_cbranch_execnz")
def _branch_mask(d: Decoding) -> Execute:
    target, pc = _target(d), d.pc
    register = VCC if "vcc" in d.name else EXEC
    if_set = d.name.endswith("nz")

    def execute(w: Wave) -> int | None:
        mask = w.masks[register >> 1]
        nonzero = truth(w.read64(register)) if mask is None else mask.any(axis=1)
        if type(nonzero) is int:
            return w.decide(nonzero if if_set else 1 - nonzero, target, pc)
        return w.decide(nonzero if if_set else ~nonzero, target, pc)

    return execute


def _hwreg_field(d: Decoding, text: str) -> tuple[int, int]:
    match = _HWREG.match(text)
    if not match or match[1] != "HW_REG_MODE":
        raise UnsupportedInstruction(f"only HW_REG_MODE can be written: {d.instruction!r}")
    return int(match[2] or 0), int(match[3] or 32)


@opcodes("s_setreg_imm32_b32", "s_setreg_b32")
def _setreg(d: Decoding) -> Execute:
    """MODE[5:4] is float32 denormal handling: 0 flushes inputs and results, 3 keeps them.

    Rounding (MODE[3:0]) and the float16/64 denormal bits must stay at their defaults.
    """
    first, width = _hwreg_field(d, d.instruction.operands[0])
    if d.name == "s_setreg_imm32_b32":
        constant = constant_bits(d.instruction.operands[1], "b32")
        value = lambda w: constant  # noqa: E731
    else:
        value = scalar32(d.operands[-1])

    def execute(w: Wave) -> None:
        field = value(w)
        if type(field) is not int:
            raise UnsupportedInstruction("MODE differs between workgroups")
        for bit in range(width):
            position, on = first + bit, field >> bit & 1
            if position in (0, 1, 2, 3) and on:
                raise UnsupportedInstruction("rounding other than to nearest even")
            if position in (6, 7) and not on:
                raise UnsupportedInstruction("flushing of float16 and float64 denormals")
        if first <= 4 and first + width > 5:
            denormals = field >> (4 - first) & 3
            if denormals not in (0, 3):
                raise UnsupportedInstruction("flushing of inputs or results only")
            w.set_denormals(flush=denormals == 0)

    return execute
