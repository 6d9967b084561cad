# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Vector registers by number (CDNA3 ISA, "S_SET_GPR_IDX_ON"): between s_set_gpr_idx_on and
s_set_gpr_idx_off, S0 of a vector instruction is the register that lies M0[7:0] behind the one it
names. decoder.mark_relative finds the instructions; indices of other operands are refused.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gfxemu.decoder import Decoding, Execute, base_builder, opcodes
from gfxemu.errors import EmulationError, UnsupportedInstruction
from gfxemu.operands import scalar32
from gfxemu.wave import M0, MOVED, Wave

OPCODES = ("v_mov_b32", "v_add_u32")

_KEPT, _S0_IS_RELATIVE = 0xFFFF_0F00, 1 << 12


@opcodes("s_set_gpr_idx_on")
def _on(d: Decoding) -> Execute:
    if d.instruction.operands[1] != "gpr_idx(SRC0)":
        raise UnsupportedInstruction(f"an index of other operands than S0: {d.instruction!r}")
    index = scalar32(d.operands[0])
    return lambda w: w.write32(M0, w.read32(M0) & _KEPT | index(w) & 0xFF | _S0_IS_RELATIVE)


@opcodes("s_set_gpr_idx_off")
def _off(d: Decoding) -> Execute:
    return lambda w: None


@opcodes(*OPCODES, form="relative")
def _of_a_register_behind(d: Decoding) -> Execute:
    source = d.operands[1]
    if source.kind != "v":
        return base_builder(d.name)(d)
    first = d.vector_range(source, 1)
    moved = dataclasses.replace(source, index=MOVED)
    execute_plain = base_builder(d.name)(
        dataclasses.replace(d, operands=(d.operands[0], moved, *d.operands[2:]))
    )

    def execute(w: Wave) -> int | None:
        register = np.asarray(w.read32(M0)).astype(np.int64) % 0x100 + first
        if (register >= d.vgprs).any():
            raise EmulationError(
                f"v{int(register.max())} is beyond the kernel's {d.vgprs} vector registers: "
                f"{d.instruction!r}"
            )
        w.v[MOVED][...] = w.regs[register, np.arange(w.size)] if register.ndim else w.v[register]
        return execute_plain(w)

    return execute
