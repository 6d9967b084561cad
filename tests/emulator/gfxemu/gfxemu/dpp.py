# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Data-parallel primitives: VOP1 and VOP2 whose S0 comes from another lane (CDNA3 ISA, "DPP").

A row is 16 lanes, a bank 4 lanes of a row. Lanes outside of row_mask and bank_mask keep D. So do
lanes whose source does not exist or is inactive, unless bound_ctrl gives them 0 as S0.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gfxemu.decoder import Decoding, Execute, base_builder, opcodes
from gfxemu.disassembler import Instruction
from gfxemu.errors import UnsupportedInstruction
from gfxemu.wave import LANES, MOVED, Wave

Array = np.ndarray

OPCODES = (
    "v_mov_b32", "v_not_b32", "v_add_f32", "v_sub_f32", "v_subrev_f32", "v_mul_f32", "v_max_f32",
    "v_min_f32", "v_fmac_f32", "v_add_u32", "v_sub_u32", "v_subrev_u32", "v_and_b32", "v_or_b32",
    "v_xor_b32", "v_min_i32", "v_max_i32", "v_min_u32", "v_max_u32", "v_mul_u32_u24",
)  # fmt: skip

_NOWHERE = -1


def _inside(source: Array, of: Array, size: int) -> Array:
    """`source` where it is in the same group of `size` lanes as the lane, else nowhere."""
    return np.where((source >= 0) & (source // size == of // size), source, _NOWHERE)


def _source_lanes(instruction: Instruction) -> Array:
    """The lane that each lane reads. Raises UnsupportedInstruction for an unknown control."""
    lane = np.arange(LANES)
    row = lane // 16 * 16
    if quad := instruction.text_modifier("quad_perm"):
        order = np.array([int(i) for i in quad.strip("[]").split(",")])
        return lane // 4 * 4 + order[lane % 4]
    if instruction.flag("row_mirror"):
        return row + 15 - lane % 16
    if instruction.flag("row_half_mirror"):
        return lane // 8 * 8 + 7 - lane % 8
    for name in ("row_shl", "row_shr", "row_ror", "row_newbcast", "row_bcast", "wave_shl",
                 "wave_shr", "wave_rol", "wave_ror"):  # fmt: skip
        count = instruction.int_modifier(name)
        if not instruction.text_modifier(name):
            continue
        if name == "row_bcast":  # lane 15 of each row, or lane 31, to what follows
            return np.where(lane > count, lane // (count + 1) * (count + 1) - 1, _NOWHERE)
        return {
            "row_shl": _inside(lane + count, lane, 16),
            "row_shr": _inside(lane - count, lane, 16),
            "row_ror": row + (lane - count) % 16,
            "row_newbcast": row + count,
            "wave_shl": _inside(lane + count, lane, LANES),
            "wave_shr": _inside(lane - count, lane, LANES),
            "wave_rol": (lane + count) % LANES,
            "wave_ror": (lane - count) % LANES,
        }[name]
    raise UnsupportedInstruction(f"DPP control is not implemented: {instruction!r}")


def _written_lanes(instruction: Instruction) -> Array:
    lane = np.arange(LANES)
    rows = instruction.int_modifier("row_mask", 0xF)
    banks = instruction.int_modifier("bank_mask", 0xF)
    return (rows >> lane // 16 & 1 != 0) & (banks >> lane % 16 // 4 & 1 != 0)


@opcodes(*OPCODES, form="dpp")
def _moved(d: Decoding) -> Execute:
    source = d.vector_range(d.operands[1], 1)
    lanes, written = _source_lanes(d.instruction), _written_lanes(d.instruction)
    exists, zero = lanes != _NOWHERE, bool(d.instruction.text_modifier("bound_ctrl"))
    moved = dataclasses.replace(d.operands[1], index=MOVED)
    execute_plain = base_builder(d.name)(
        dataclasses.replace(d, operands=(d.operands[0], moved, *d.operands[2:]))
    )
    everything = bool(written.all())

    def execute(w: Wave) -> int | None:
        valid = w.lanes[:, lanes] & exists
        w.v[MOVED][...] = np.where(valid, w.v[source][:, lanes], np.uint32(0))
        if zero and everything:
            return execute_plain(w)
        with w.only(written if zero else written & valid):
            return execute_plain(w)

    return execute
