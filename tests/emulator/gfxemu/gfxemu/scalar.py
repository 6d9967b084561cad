# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Scalar ALU and scalar memory (CDNA3 ISA, "Scalar ALU Operations", "Scalar Memory")."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gfxemu import scalars
from gfxemu.decoder import Decoding, Execute, opcodes
from gfxemu.errors import UnsupportedInstruction
from gfxemu.operands import constant_bits, lane_mask, scalar32, scalar64
from gfxemu.pending import ScalarResult, issue_lgkm
from gfxemu.scalars import (
    MASK32,
    MASK64,
    Condition,
    Scalar,
    arithmetic_shift_right,
    as_number,
    condition,
    map_elements,
    select,
    shift_left,
    shift_right,
    signed32,
    signed64,
    truth,
    wrap32,
    wrap64,
)
from gfxemu.wave import EXEC, LaneMask, Wave

# 32-bit results whose SCC is "result != 0".
_LOGIC32: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
    "s_and_b32": lambda a, b: a & b,
    "s_or_b32": lambda a, b: a | b,
    "s_xor_b32": lambda a, b: a ^ b,
    "s_andn2_b32": lambda a, b: a & (b ^ MASK32),
    "s_orn2_b32": lambda a, b: a | (b ^ MASK32),
    "s_nand_b32": lambda a, b: (a & b) ^ MASK32,
    "s_nor_b32": lambda a, b: (a | b) ^ MASK32,
    "s_xnor_b32": lambda a, b: (a ^ b) ^ MASK32,
    "s_lshl_b32": lambda a, b: wrap32(shift_left(a, b & 31)),
    "s_lshr_b32": lambda a, b: shift_right(a, b & 31),
    "s_ashr_i32": lambda a, b: wrap32(arithmetic_shift_right(signed32(a), b & 31)),
    "s_bfe_u32": lambda a, b: map_elements(_bfe_unsigned, a, b),
    "s_bfe_i32": lambda a, b: map_elements(_bfe_signed, a, b),
}


def _bfe_unsigned(a: int, b: int) -> int:
    """S1[4:0] is the offset, S1[22:16] the width."""
    return (a >> (b & 31)) & ((1 << (b >> 16 & 0x7F)) - 1)


def _bfe_signed(a: int, b: int) -> int:
    width = b >> 16 & 0x7F
    field = _bfe_unsigned(a, b)
    if 0 < width < 32 and field >> (width - 1) & 1:
        field -= 1 << width
    return field & MASK32


@opcodes(*_LOGIC32)
def _logic32(d: Decoding) -> Execute:
    function = _LOGIC32[d.name]
    to, a, b = d.operands[0].index, scalar32(d.operands[1]), scalar32(d.operands[2])

    def execute(w: Wave) -> None:
        r = function(a(w), b(w))
        w._scc = (1 if r else 0) if type(r) is int else r != 0
        w.write32(to, r)

    return execute


# 32-bit results with no effect on SCC.
_PLAIN32: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
    "s_mul_i32": lambda a, b: wrap32(a * b),
    "s_mul_hi_u32": lambda a, b: shift_right(a * b, 32),
    "s_mul_hi_i32": lambda a, b: wrap32(arithmetic_shift_right(signed32(a) * signed32(b), 32)),
    "s_pack_ll_b32_b16": lambda a, b: (a & 0xFFFF) | shift_left(b & 0xFFFF, 16),
    "s_pack_lh_b32_b16": lambda a, b: (a & 0xFFFF) | (b & 0xFFFF_0000),
    "s_pack_hh_b32_b16": lambda a, b: shift_right(a, 16) | (b & 0xFFFF_0000),
    "s_bfm_b32": lambda a, b: map_elements(
        lambda x, y: (((1 << (x & 31)) - 1) << (y & 31)) & MASK32, a, b
    ),
}


@opcodes(*_PLAIN32)
def _plain32(d: Decoding) -> Execute:
    function = _PLAIN32[d.name]
    to, a, b = d.operands[0].index, scalar32(d.operands[1]), scalar32(d.operands[2])

    def execute(w: Wave) -> None:
        w.write32(to, function(a(w), b(w)))

    return execute


def _signed_sum(r: Scalar) -> tuple[Scalar, Condition]:
    """Result and overflow of a signed sum that was formed without wrapping."""
    return wrap32(r), condition((r < -(1 << 31)) | (r > (1 << 31) - 1))


def _unsigned_sum(r: Scalar) -> tuple[Scalar, Condition]:
    return wrap32(r), condition(r > MASK32)


def _minimum_maximum(a: Scalar, b: Scalar, first: Condition) -> tuple[Scalar, Condition]:
    return select(first, a, b), first


# 32-bit results with their own SCC: carry, borrow, overflow, or "the first operand was taken".
_CARRY32: dict[str, Callable[[Scalar, Scalar, Scalar], tuple[Scalar, Condition]]] = {
    "s_add_u32": lambda a, b, c: _unsigned_sum(a + b),
    "s_addc_u32": lambda a, b, c: _unsigned_sum(a + b + c),
    "s_sub_u32": lambda a, b, c: (wrap32(a + (1 << 32) - b), condition(b > a)),
    "s_subb_u32": lambda a, b, c: (wrap32(a + (1 << 32) - b - c), condition(b + c > a)),
    "s_add_i32": lambda a, b, c: _signed_sum(signed32(a) + signed32(b)),
    "s_sub_i32": lambda a, b, c: _signed_sum(signed32(a) - signed32(b)),
    "s_absdiff_i32": lambda a, b, c: map_elements2(
        lambda x, y: abs(signed32(x) - signed32(y)) & MASK32, a, b
    ),
    "s_min_i32": lambda a, b, c: _minimum_maximum(a, b, condition(signed32(a) < signed32(b))),
    "s_max_i32": lambda a, b, c: _minimum_maximum(a, b, condition(signed32(a) > signed32(b))),
    "s_min_u32": lambda a, b, c: _minimum_maximum(a, b, condition(a < b)),
    "s_max_u32": lambda a, b, c: _minimum_maximum(a, b, condition(a > b)),
    "s_lshl1_add_u32": lambda a, b, c: _unsigned_sum(shift_left(a, 1) + b),
    "s_lshl2_add_u32": lambda a, b, c: _unsigned_sum(shift_left(a, 2) + b),
    "s_lshl3_add_u32": lambda a, b, c: _unsigned_sum(shift_left(a, 3) + b),
    "s_lshl4_add_u32": lambda a, b, c: _unsigned_sum(shift_left(a, 4) + b),
}


def map_elements2(function, a: Scalar, b: Scalar) -> tuple[Scalar, Condition]:
    r = map_elements(function, a, b)
    return r, truth(r)


@opcodes(*_CARRY32)
def _carry32(d: Decoding) -> Execute:
    function = _CARRY32[d.name]
    uses_scc = d.name in ("s_addc_u32", "s_subb_u32")
    to, a, b = d.operands[0].index, scalar32(d.operands[1]), scalar32(d.operands[2])

    def execute(w: Wave) -> None:
        r, w._scc = function(a(w), b(w), as_number(w.scc) if uses_scc else 0)
        w.write32(to, r)

    return execute


# One operand.
_UNARY32: dict[str, Callable[[Scalar], tuple[Scalar, Condition | None]]] = {
    "s_mov_b32": lambda a: (a, None),
    "s_not_b32": lambda a: _nonzero(a ^ MASK32),
    "s_abs_i32": lambda a: _nonzero(map_elements(lambda x: abs(signed32(x)), a)),
    "s_brev_b32": lambda a: (map_elements(lambda x: int(f"{x:032b}"[::-1], 2), a), None),
    "s_sext_i32_i8": lambda a: (
        map_elements(lambda x: ((x & 0xFF ^ 0x80) - 0x80) & MASK32, a),
        None,
    ),
    "s_sext_i32_i16": lambda a: (
        map_elements(lambda x: ((x & 0xFFFF ^ 0x8000) - 0x8000) & MASK32, a),
        None,
    ),
    "s_bcnt1_i32_b32": lambda a: _nonzero(map_elements(lambda x: x.bit_count(), a)),
    "s_ff1_i32_b32": lambda a: (
        map_elements(lambda x: (x & -x).bit_length() - 1 if x else MASK32, a),
        None,
    ),
    "s_flbit_i32_b32": lambda a: (
        map_elements(lambda x: 32 - x.bit_length() if x else MASK32, a),
        None,
    ),
}


def _nonzero(r: Scalar) -> tuple[Scalar, Condition]:
    return r, truth(r)


@opcodes(*_UNARY32)
def _unary32(d: Decoding) -> Execute:
    function = _UNARY32[d.name]
    to, a = d.operands[0].index, scalar32(d.operands[1])
    if d.name == "s_mov_b32":
        return lambda w: w.write32(to, a(w))

    def execute(w: Wave) -> None:
        r, scc = function(a(w))
        if scc is not None:
            w._scc = scc
        w.write32(to, r)

    return execute


def _immediate16(d: Decoding, position: int) -> int:
    """SIMM16, sign-extended."""
    value = int(d.instruction.operands[position], 0) & 0xFFFF
    return value - 0x1_0000 if value & 0x8000 else value


@opcodes("s_movk_i32", "s_addk_i32", "s_mulk_i32")
def _sopk(d: Decoding) -> Execute:
    to, k = d.operands[0].index, _immediate16(d, 1)
    if d.name == "s_movk_i32":
        value = k & MASK32
        return lambda w: w.write32(to, value)

    def execute(w: Wave) -> None:
        a = signed32(w.read32(to))
        if d.name == "s_mulk_i32":
            w.write32(to, wrap32(a * k))
        else:
            r, w._scc = _signed_sum(a + k)
            w.write32(to, r)

    return execute


_COMPARE: dict[str, Callable[[Scalar, Scalar], object]] = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}


@opcodes(*(f"s_cmp_{c}_{t}" for c in _COMPARE for t in ("i32", "u32")),
         *(f"s_cmpk_{c}_{t}" for c in _COMPARE for t in ("i32", "u32")),
         "s_cmp_eq_u64", "s_cmp_lg_u64")  # fmt: skip
def _compare(d: Decoding) -> Execute:
    kind, relation, number = d.name.removeprefix("s_").split("_")
    function = _COMPARE[relation]
    if number == "u64":
        a, b = scalar64(d.operands[0]), scalar64(d.operands[1])
    elif kind == "cmpk":
        k = _immediate16(d, 1)
        constant = k & (MASK32 if number == "i32" else 0xFFFF)
        a, b = scalar32(d.operands[0]), lambda w: constant
    else:
        a, b = scalar32(d.operands[0]), scalar32(d.operands[1])
    if number == "i32":

        def execute(w: Wave) -> None:
            w._scc = condition(function(signed32(a(w)), signed32(b(w))))
    else:

        def execute(w: Wave) -> None:
            w._scc = condition(function(a(w), b(w)))

    return execute


@opcodes("s_bitcmp0_b32", "s_bitcmp1_b32")
def _bit_compare(d: Decoding) -> Execute:
    expected = int(d.name[8])
    a, b = scalar32(d.operands[0]), scalar32(d.operands[1])

    def execute(w: Wave) -> None:
        w._scc = condition((shift_right(a(w), b(w) & 31) & 1) == expected)

    return execute


@opcodes("s_bitset0_b32", "s_bitset1_b32")
def _bit_set(d: Decoding) -> Execute:
    to, position = d.operands[0].index, scalar32(d.operands[1])
    value = int(d.name[8])

    def execute(w: Wave) -> None:
        bit = shift_left(1, position(w) & 31)
        old = w.read32(to)
        w.write32(to, old | bit if value else old & (bit ^ MASK32))

    return execute


@opcodes("s_cselect_b32", "s_cselect_b64", "s_cmov_b32", "s_cmov_b64")
def _conditional(d: Decoding) -> Execute:
    to, wide = d.operands[0], d.name.endswith("64")
    read = scalar64 if wide else scalar32
    sources = list(d.operands[1:]) if "cselect" in d.name else [d.operands[1], to]
    if_set, if_clear = read(sources[0]), read(sources[1])
    if wide:
        mask_set, mask_clear = lane_mask(sources[0]), lane_mask(sources[1])

    def execute(w: Wave) -> None:
        c = w.scc
        if not wide:
            w.write32(to.index, select(c, if_set(w), if_clear(w)))
        elif type(c) is int:
            source = sources[0] if c else sources[1]
            _move64(w, to.index, source.index if source.kind == "s" else None,
                    if_set if c else if_clear)  # fmt: skip
        else:
            w.write_mask(to.index, np.where(c[:, None], mask_set(w), mask_clear(w)))

    return execute


def _move64(w: Wave, to: int, register: int | None, value) -> None:
    mask = None if register is None else w.masks[register >> 1]
    if mask is None:
        w.write64(to, value(w))
    else:
        w.write_mask(to, mask)


@opcodes("s_mov_b64")
def _mov64(d: Decoding) -> Execute:
    to, source = d.operands[0].index, d.operands[1]
    register = source.index if source.kind == "s" else None
    value = scalar64(source)
    return lambda w: _move64(w, to, register, value)


# 64-bit logic works on lane masks where an operand is one, and on numbers otherwise.
_LOGIC64: dict[
    str, tuple[Callable[[Scalar, Scalar], Scalar], Callable[[LaneMask, LaneMask], LaneMask]]
] = {
    "s_and_b64": (lambda a, b: a & b, np.logical_and),
    "s_or_b64": (lambda a, b: a | b, np.logical_or),
    "s_xor_b64": (lambda a, b: a ^ b, np.logical_xor),
    "s_andn2_b64": (lambda a, b: a & (b ^ MASK64), lambda a, b: a & ~b),
    "s_orn2_b64": (lambda a, b: a | (b ^ MASK64), lambda a, b: a | ~b),
    "s_nand_b64": (lambda a, b: (a & b) ^ MASK64, lambda a, b: ~(a & b)),
    "s_nor_b64": (lambda a, b: (a | b) ^ MASK64, lambda a, b: ~(a | b)),
    "s_xnor_b64": (lambda a, b: (a ^ b) ^ MASK64, lambda a, b: a == b),
}


@opcodes(*_LOGIC64)
def _logic64(d: Decoding) -> Execute:
    on_numbers, on_masks = _LOGIC64[d.name]
    to, x, y = d.operands
    a, b = scalar64(x), scalar64(y)
    mask_a, mask_b = lane_mask(x), lane_mask(y)
    pairs = [op.index >> 1 for op in (x, y) if op.kind == "s"]

    def execute(w: Wave) -> None:
        for pair in pairs:
            if w.masks[pair] is not None:
                mask = on_masks(mask_a(w), mask_b(w))
                w._scc = mask
                w.write_mask(to.index, mask)
                return
        r = on_numbers(a(w), b(w))
        w._scc = truth(r)
        w.write64(to.index, r)

    return execute


@opcodes("s_not_b64")
def _not64(d: Decoding) -> Execute:
    to, source = d.operands[0].index, d.operands[1]
    a, pair = scalar64(source), source.index >> 1 if source.kind == "s" else None

    def execute(w: Wave) -> None:
        mask = None if pair is None else w.masks[pair]
        if mask is None:
            r = a(w) ^ MASK64
            w._scc = truth(r)
            w.write64(to, r)
        else:
            w._scc = ~mask
            w.write_mask(to, ~mask)

    return execute


_SHIFT64: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
    "s_lshl_b64": lambda a, b: shift_left(a, b & 63),
    "s_lshr_b64": lambda a, b: shift_right(a, b & 63),
    "s_ashr_i64": lambda a, b: wrap64(arithmetic_shift_right(signed64(a), b & 63)),
}


@opcodes(*_SHIFT64)
def _shift64(d: Decoding) -> Execute:
    function = _SHIFT64[d.name]
    to, a, b = d.operands[0].index, scalar64(d.operands[1]), scalar32(d.operands[2])

    def execute(w: Wave) -> None:
        r = function(a(w), b(w))
        w._scc = truth(r)
        w.write64(to, r)

    return execute


@opcodes("s_bcnt1_i32_b64", "s_ff1_i32_b64")
def _count64(d: Decoding) -> Execute:
    to, a = d.operands[0].index, scalar64(d.operands[1])
    if d.name == "s_bcnt1_i32_b64":

        def execute(w: Wave) -> None:
            r = map_elements(lambda x: x.bit_count(), a(w))
            w._scc = truth(r)
            w.write32(to, r)

        return execute
    return lambda w: w.write32(
        to, map_elements(lambda x: (x & -x).bit_length() - 1 if x else MASK32, a(w))
    )


_SAVEEXEC: dict[str, Callable[[LaneMask, LaneMask], LaneMask]] = {
    "s_and_saveexec_b64": lambda s, e: s & e,
    "s_or_saveexec_b64": lambda s, e: s | e,
    "s_xor_saveexec_b64": lambda s, e: s ^ e,
    "s_andn2_saveexec_b64": lambda s, e: s & ~e,
}


@opcodes(*_SAVEEXEC)
def _saveexec(d: Decoding) -> Execute:
    function = _SAVEEXEC[d.name]
    to, source = d.operands[0].index, lane_mask(d.operands[1])

    def execute(w: Wave) -> None:
        old = w.lanes
        new = function(source(w), old)
        w.write_mask(to, old)
        w.set_exec_mask(new)
        w._scc = new

    return execute


def _sum64(base: Scalar, offset: Scalar, extra: int) -> Scalar:
    """An address; an int may be out of bounds, arrays wrap."""
    if type(base) is int and type(offset) is int:
        return base + offset + extra
    terms = (np.asarray(x & MASK64 if type(x) is int else x, np.uint64) for x in (base, offset))
    return sum(terms, np.uint64(extra & MASK64))


@opcodes("s_load_dword", "s_load_dwordx2", "s_load_dwordx4", "s_load_dwordx8", "s_load_dwordx16")
def _load(d: Decoding) -> Execute:
    count = int(d.name.removeprefix("s_load_dword").lstrip("x") or 1)
    to, base = d.operands[0].index, scalar64(d.operands[1])
    offset_text = d.instruction.operands[2]
    extra = d.instruction.int_modifier("offset")
    if d.operands[2].kind == "constant":
        constant = constant_bits(offset_text, "b64")
        constant -= (1 << 64) if constant >> 63 else 0
        offset = lambda w: constant  # noqa: E731
    else:
        offset = scalar32(d.operands[2])
    if to + count > EXEC:
        raise UnsupportedInstruction("scalar load beyond the last SGPR")
    pc = d.pc

    def execute(w: Wave) -> None:
        address = _sum64(base(w), offset(w), extra)
        memory = w.group.memory
        if w.group.observer is not None:
            w.group.observer.observe(pc, "the address", np.asarray(address))
        values: list[Scalar]
        if type(address) is int:
            copies = memory.dwords(address & ~3, count)
            if len(copies) == 1 or (copies == copies[0]).all():
                values = copies[0].tolist()
            else:
                rows = copies[w.copies[:, 0].astype(np.int64)].astype(np.uint64)
                values = [scalars.collapse(rows[:, i]) for i in range(count)]
        else:
            lanes = (address & ~np.uint64(3))[:, None] + 4 * np.arange(count, dtype=np.uint64)
            words = memory.load(lanes, 4, w.copies).astype(np.uint64)
            values = [scalars.collapse(words[:, i]) for i in range(count)]
        if w.late:
            for i in range(count):
                w.write32(to + i, w.scalar_poison)
            issue_lgkm(w, ScalarResult(to, values))
        else:
            for i, value in enumerate(values):
                w.write32(to + i, value)

    return execute
