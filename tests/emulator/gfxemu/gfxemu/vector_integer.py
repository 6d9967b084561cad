# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Vector ALU: moves, integer arithmetic, shifts and bit operations (CDNA3 ISA, VOP1-VOP3)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gfxemu.decoder import Decoding, Execute, opcodes
from gfxemu.errors import UnsupportedInstruction
from gfxemu.operands import Operand, lane_mask, to_lanes32, vector32, vector64
from gfxemu.operands import scalar32 as scalar_operand
from gfxemu.wave import LANES, VCC, Wave

Array = np.ndarray
_U32, _U64 = np.uint32, np.uint64
_16, _31, _32, _15 = _U32(16), _U32(31), _U32(32), _U32(15)
_LOW16, _LOW24 = _U32(0xFFFF), _U32(0xFF_FFFF)


def as_signed(x: Array) -> Array:
    return x.view(np.int32)


def as_unsigned(x: Array) -> Array:
    return x.view(_U32)


def _signed16(x: Array) -> Array:
    """The low half, sign-extended, as int32."""
    return (as_signed(x << _16)) >> np.int32(16)


def _signed24(x: Array) -> Array:
    return as_signed(x << _U32(8)) >> np.int32(8)


def reverse_bits(x: Array) -> Array:
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF)):
        s, m = _U32(shift), _U32(mask)
        x = ((x >> s) & m) | ((x & m) << s)
    return (x >> _16) | (x << _16)


def count_bits(x: Array) -> Array:
    return np.bitwise_count(x).astype(_U32)


def _find_first_high(x: Array) -> Array:
    """Leading zeros; all ones for zero. float64 holds 32-bit integers exactly."""
    exponent = np.frexp(x.astype(np.float64))[1]
    return np.where(x == 0, _U32(0xFFFF_FFFF), (32 - exponent).astype(_U32))


def _find_first_low(x: Array) -> Array:
    lowest = x & (~x + _U32(1))
    return np.where(x == 0, _U32(0xFFFF_FFFF), count_bits(lowest - _U32(1)))


UNARY: dict[str, Callable[[Array], Array]] = {
    "v_mov_b32": lambda a: a,
    "v_not_b32": lambda a: ~a,
    "v_bfrev_b32": reverse_bits,
    "v_ffbh_u32": _find_first_high,
    "v_ffbl_b32": _find_first_low,
    "v_accvgpr_read_b32": lambda a: a,
    "v_accvgpr_write_b32": lambda a: a,
    "v_accvgpr_mov_b32": lambda a: a,
}

BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "v_add_u32": lambda a, b: a + b,
    "v_sub_u32": lambda a, b: a - b,
    "v_subrev_u32": lambda a, b: b - a,
    # The signed forms differ by their clamp alone, which is refused.
    "v_add_i32": lambda a, b: a + b,
    "v_sub_i32": lambda a, b: a - b,
    "v_and_b32": lambda a, b: a & b,
    "v_or_b32": lambda a, b: a | b,
    "v_xor_b32": lambda a, b: a ^ b,
    "v_xnor_b32": lambda a, b: ~(a ^ b),
    "v_lshlrev_b32": lambda a, b: b << (a & _31),
    "v_lshrrev_b32": lambda a, b: b >> (a & _31),
    "v_ashrrev_i32": lambda a, b: as_unsigned(as_signed(b) >> as_signed(a & _31)),
    "v_mul_lo_u32": lambda a, b: a * b,
    "v_mul_hi_u32": lambda a, b: ((a.astype(_U64) * b.astype(_U64)) >> _U64(32)).astype(_U32),
    "v_mul_hi_i32": lambda a, b: (
        (as_signed(a).astype(np.int64) * as_signed(b).astype(np.int64)) >> np.int64(32)
    ).astype(_U32),
    "v_mul_u32_u24": lambda a, b: (a & _LOW24) * (b & _LOW24),
    "v_mul_i32_i24": lambda a, b: as_unsigned(_signed24(a) * _signed24(b)),
    "v_min_i32": lambda a, b: as_unsigned(np.minimum(as_signed(a), as_signed(b))),
    "v_max_i32": lambda a, b: as_unsigned(np.maximum(as_signed(a), as_signed(b))),
    "v_min_u32": np.minimum,
    "v_max_u32": np.maximum,
    "v_bcnt_u32_b32": lambda a, b: count_bits(a) + b,
    "v_bfm_b32": lambda a, b: ((_U32(1) << (a & _31)) - _U32(1)) << (b & _31),
    # 16-bit operations read the low halves and write zero-extended (CDNA3 ISA, "16-bit").
    "v_add_u16": lambda a, b: (a + b) & _LOW16,
    "v_sub_u16": lambda a, b: (a - b) & _LOW16,
    "v_subrev_u16": lambda a, b: (b - a) & _LOW16,
    "v_mul_lo_u16": lambda a, b: ((a & _LOW16) * (b & _LOW16)) & _LOW16,
    "v_lshlrev_b16": lambda a, b: (b << (a & _15)) & _LOW16,
    "v_lshrrev_b16": lambda a, b: (b & _LOW16) >> (a & _15),
    "v_ashrrev_i16": lambda a, b: as_unsigned(_signed16(b) >> as_signed(a & _15)) & _LOW16,
    "v_min_u16": lambda a, b: np.minimum(a & _LOW16, b & _LOW16),
    "v_max_u16": lambda a, b: np.maximum(a & _LOW16, b & _LOW16),
    "v_min_i16": lambda a, b: as_unsigned(np.minimum(_signed16(a), _signed16(b))) & _LOW16,
    "v_max_i16": lambda a, b: as_unsigned(np.maximum(_signed16(a), _signed16(b))) & _LOW16,
}


def _bfe_unsigned(a: Array, b: Array, c: Array) -> Array:
    return (a >> (b & _31)) & ((_U32(1) << (c & _31)) - _U32(1))


def _bfe_signed(a: Array, b: Array, c: Array) -> Array:
    """Width 0 gives 0; a field that ends beyond bit 31 takes its sign from bit 31."""
    offset, width = b & _31, c & _31
    left = np.where(offset + width < _32, _32 - offset - width, _U32(0)) & _31
    # The bits below the field that remain after its top bit is moved to bit 31.
    right = np.where(offset + width < _32, _32 - width, offset) & _31
    return np.where(width == 0, _U32(0), as_unsigned(as_signed(a << left) >> as_signed(right)))


def _permute_bytes(a: Array, b: Array, selector: Array) -> Array:
    """v_perm_b32: byte i of the result is chosen by byte i of the selector from {S0, S1}.

    0-7: that byte of the 64-bit value whose low half is S1. 8-11: the sign of byte 1, 3, 5, 7 of
    it, replicated. 12: 0x00. Above: 0xff.
    """
    if selector.ndim == 0:
        return _permute_bytes_constant(a, b, int(selector))
    shape = np.broadcast_shapes(a.shape, b.shape, selector.shape)
    both = np.broadcast_to(b.astype(_U64) | (a.astype(_U64) << _U64(32)), shape)
    selector = np.broadcast_to(selector, shape)
    out = np.zeros(shape, _U32)
    for i in range(4):
        s = (selector >> _U32(8 * i)) & _U32(0xFF)
        byte = (both >> ((s & _U32(7)).astype(_U64) << _U64(3))) & _U64(0xFF)
        sign_bit = (((s - _U32(8)) & _U32(3)) * _16 + _15).astype(_U64)
        sign = ((both >> sign_bit) & _U64(1)) * _U64(0xFF)
        byte = np.where(
            s >= 8, np.where(s < 12, sign, np.where(s == 12, _U64(0), _U64(0xFF))), byte
        )
        out |= byte.astype(_U32) << _U32(8 * i)
    return out


def _permute_bytes_constant(a: Array, b: Array, selector: int) -> Array:
    selected = [selector >> 8 * i & 0xFF for i in range(4)]
    # The compiler's usual selectors move whole halves.
    for low in (0, 2, 4, 6):
        for high in (0, 2, 4, 6):
            if selected == [low, low + 1, high, high + 1]:
                x, y = (b if low < 4 else a), (b if high < 4 else a)
                x = x >> _16 if low & 2 else x & _LOW16
                y = y & ~_LOW16 if high & 2 else y << _16
                return x | y
    out: Array = _U32(0)
    for i, s in enumerate(selected):
        source = b if s < 4 or s in (8, 9) else a
        if s < 8:
            byte = (source >> _U32(8 * (s & 3))) & _U32(0xFF)
        elif s < 12:
            byte = ((source >> _U32(31 if s & 1 else 15)) & _U32(1)) * _U32(0xFF)
        else:
            byte = _U32(0 if s == 12 else 0xFF)
        out = out | (byte << _U32(8 * i))
    return out


def _median(a: Array, b: Array, c: Array) -> Array:
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def _absolute_difference16(a: Array, b: Array) -> Array:
    a, b = as_signed(a & _LOW16), as_signed(b & _LOW16)
    return as_unsigned(np.abs(a - b))


# Those of BINARY that are one function of numpy's, which may write to the destination.
_DIRECT: dict[str, np.ufunc] = {
    "v_add_u32": np.add,
    "v_sub_u32": np.subtract,
    "v_add_i32": np.add,
    "v_sub_i32": np.subtract,
    "v_and_b32": np.bitwise_and,
    "v_or_b32": np.bitwise_or,
    "v_xor_b32": np.bitwise_xor,
    "v_mul_lo_u32": np.multiply,
    "v_min_u32": np.minimum,
    "v_max_u32": np.maximum,
}

TERNARY: dict[str, Callable[[Array, Array, Array], Array]] = {
    "v_add3_u32": lambda a, b, c: a + b + c,
    "v_lshl_add_u32": lambda a, b, c: (a << (b & _31)) + c,
    "v_add_lshl_u32": lambda a, b, c: (a + b) << (c & _31),
    "v_lshl_or_b32": lambda a, b, c: (a << (b & _31)) | c,
    "v_and_or_b32": lambda a, b, c: (a & b) | c,
    "v_or3_b32": lambda a, b, c: a | b | c,
    "v_xad_u32": lambda a, b, c: (a ^ b) + c,
    "v_bfi_b32": lambda a, b, c: (a & b) | (~a & c),
    "v_bfe_u32": _bfe_unsigned,
    "v_bfe_i32": _bfe_signed,
    "v_perm_b32": _permute_bytes,
    "v_alignbit_b32": lambda a, b, c: (
        ((a.astype(_U64) << _U64(32)) | b.astype(_U64)) >> (c & _31).astype(_U64)
    ).astype(_U32),
    "v_alignbyte_b32": lambda a, b, c: (
        ((a.astype(_U64) << _U64(32)) | b.astype(_U64)) >> ((c & _U32(3)) << _U32(3)).astype(_U64)
    ).astype(_U32),
    "v_mad_u32_u24": lambda a, b, c: (a & _LOW24) * (b & _LOW24) + c,
    "v_mad_i32_i24": lambda a, b, c: as_unsigned(_signed24(a) * _signed24(b)) + c,
    "v_mad_legacy_u16": lambda a, b, c: ((a & _LOW16) * (b & _LOW16) + c) & _LOW16,
    "v_mad_u32_u16": lambda a, b, c: (a & _LOW16) * (b & _LOW16) + c,
    "v_sad_u16": lambda a, b, c: (
        _absolute_difference16(a, b) + _absolute_difference16(a >> _16, b >> _16) + c
    ),
    "v_sad_u32": lambda a, b, c: np.where(a > b, a - b, b - a) + c,
    "v_min3_u32": lambda a, b, c: np.minimum(np.minimum(a, b), c),
    "v_max3_u32": lambda a, b, c: np.maximum(np.maximum(a, b), c),
    "v_min3_i32": lambda a, b, c: as_unsigned(
        np.minimum(np.minimum(as_signed(a), as_signed(b)), as_signed(c))
    ),
    "v_med3_u32": _median,
    "v_med3_i32": lambda a, b, c: as_unsigned(_median(as_signed(a), as_signed(b), as_signed(c))),
    "v_max3_i32": lambda a, b, c: as_unsigned(
        np.maximum(np.maximum(as_signed(a), as_signed(b)), as_signed(c))
    ),
}


@opcodes(*UNARY)
def _unary(d: Decoding) -> Execute:
    to, a, function = d.destination(), vector32(d.operands[1]), UNARY[d.name]
    if function is UNARY["v_mov_b32"] or d.name.startswith("v_accvgpr"):
        return lambda w: w.write_vector(to, a(w))
    return lambda w: w.write_vector(to, function(a(w)))


@opcodes(*BINARY)
def _binary(d: Decoding) -> Execute:
    function, to = BINARY[d.name], d.destination()
    a, b = vector32(d.operands[1]), vector32(d.operands[2])
    direct = _DIRECT.get(d.name)

    def execute(w: Wave) -> None:
        if not w.all_lanes:
            np.copyto(w.v[to], function(a(w), b(w)), where=w.lanes)
        elif direct is not None:
            direct(a(w), b(w), out=w.v[to])
        else:
            w.v[to][...] = function(a(w), b(w))

    return execute


@opcodes(*TERNARY)
def _ternary(d: Decoding) -> Execute:
    function, to = TERNARY[d.name], d.destination()
    a, b, c = (vector32(op) for op in d.operands[1:])

    def execute(w: Wave) -> None:
        value = function(a(w), b(w), c(w))
        if w.all_lanes:
            w.v[to][...] = value
        else:
            np.copyto(w.v[to], value, where=w.lanes)

    return execute


@opcodes("v_bitop3_b32", "v_bitop3_b16")
def _bitop3(d: Decoding) -> Execute:
    """gfx950: any boolean function of three inputs, given as a truth table."""
    kept = _LOW16 if d.name.endswith("16") else _U32(0xFFFF_FFFF)
    to, table = d.destination(), d.instruction.int_modifier("bitop3")
    a, b, c = (vector32(op) for op in d.operands[1:])

    def execute(w: Wave) -> None:
        x, y, z = a(w), b(w), c(w)
        r: Array = _U32(0)
        for i in range(8):
            if table >> i & 1:
                r = r | ((x if i & 4 else ~x) & (y if i & 2 else ~y) & (z if i & 1 else ~z))
        w.write_vector(to, r & kept)

    return execute


@opcodes("v_mbcnt_lo_u32_b32", "v_mbcnt_hi_u32_b32")
def _masked_bit_count(d: Decoding) -> Execute:
    """Bits of S0 below this lane, within lanes 0-31 (lo) or 32-63 (hi), plus S1."""
    to, a, b = d.destination(), vector32(d.operands[1]), vector32(d.operands[2])
    first = 0 if "_lo_" in d.name else 32
    below = np.array([(1 << min(max(lane - first, 0), 32)) - 1 for lane in range(LANES)], _U32)
    return lambda w: w.write_vector(to, count_bits(a(w) & below) + b(w))


@opcodes("v_pack_b32_f16")
def _pack(d: Decoding) -> Execute:
    to, select = d.destination(), d.instruction.bits_modifier("op_sel", 3, 0)
    if select[2]:
        raise UnsupportedInstruction(f"op_sel of the destination: {d.instruction!r}")
    a, b = vector32(d.operands[1], "f16"), vector32(d.operands[2], "f16")
    shift_a, shift_b = _U32(16 * select[0]), _U32(16 * select[1])
    return lambda w: w.write_vector(
        to, ((a(w) >> shift_a) & _LOW16) | (((b(w) >> shift_b) & _LOW16) << _16)
    )


# 64-bit results.

_BINARY64: dict[str, Callable[[Array, Array], Array]] = {
    "v_lshlrev_b64": lambda a, b: b << (a.astype(_U64) & _U64(63)),
    "v_lshrrev_b64": lambda a, b: b >> (a.astype(_U64) & _U64(63)),
    "v_ashrrev_i64": lambda a, b: (b.view(np.int64) >> (a.astype(np.int64) & np.int64(63))).view(
        _U64
    ),
}


@opcodes(*_BINARY64)
def _binary64(d: Decoding) -> Execute:
    function, to = _BINARY64[d.name], d.destination(2)
    a, b = vector32(d.operands[1]), vector64(d.operands[2])
    return lambda w: w.write_vector64(to, function(a(w), b(w)))


@opcodes("v_mov_b64")
def _mov64(d: Decoding) -> Execute:
    to, a = d.destination(2), vector64(d.operands[1])
    return lambda w: w.write_vector64(to, a(w))


@opcodes("v_lshl_add_u64")
def _shift_add64(d: Decoding) -> Execute:
    """S1[2:0], at most 4, is the shift."""
    to, a = d.destination(2), vector64(d.operands[1])
    b, c = vector32(d.operands[2]), vector64(d.operands[3])
    return lambda w: w.write_vector64(to, (a(w) << (b(w).astype(_U64) & _U64(7))) + c(w))


@opcodes("v_mad_u64_u32", "v_mad_i64_i32")
def _mad64(d: Decoding) -> Execute:
    """D = S0 * S1 + S2 with the carry of the sum (unsigned) or its overflow in the second
    destination."""
    to, carry_out = d.destination(2), d.operands[1].index
    a, b, c = vector32(d.operands[2]), vector32(d.operands[3]), vector64(d.operands[4])
    signed = d.name == "v_mad_i64_i32"

    def execute(w: Wave) -> None:
        x, y, z = a(w), b(w), c(w)
        if signed:
            product = (as_signed(x).astype(np.int64) * as_signed(y).astype(np.int64)).view(_U64)
            total = product + z
            carry = ((product ^ total) & (z ^ total)) >> _U64(63) != 0
        else:
            product = x.astype(_U64) * y.astype(_U64)
            total = product + z
            carry = total < z
        w.write_vector64(to, total)
        w.write_mask(carry_out, np.logical_and(carry, w.lanes))

    return execute


_WITH_CARRY = ("v_addc_co_u32", "v_subb_co_u32", "v_subbrev_co_u32")


@opcodes("v_add_co_u32", "v_sub_co_u32", "v_subrev_co_u32", *_WITH_CARRY)
def _carry(d: Decoding) -> Execute:
    to, carry_out = d.destination(), d.operands[1].index
    a, b = vector32(d.operands[2]), vector32(d.operands[3])
    subtract, reverse = "sub" in d.name, "rev" in d.name
    carry_in = None
    if d.name in _WITH_CARRY:
        carry_in = lane_mask(d.operands[4])

    def execute(w: Wave) -> None:
        x, y = a(w).astype(_U64), b(w).astype(_U64)
        if reverse:
            x, y = y, x
        c = _U64(0) if carry_in is None else carry_in(w).astype(_U64)
        total = x - y - c if subtract else x + y + c
        w.write_vector(to, total.astype(_U32))
        w.write_mask(carry_out, np.logical_and((total >> _U64(32)) != 0, w.lanes))

    return execute


@opcodes("v_cndmask_b32")
def _conditional(d: Decoding) -> Execute:
    to, a, b = d.destination(), vector32(d.operands[1], "f32"), vector32(d.operands[2], "f32")
    vcc = Operand("s", VCC, 2)
    mask = lane_mask(d.operands[3] if len(d.operands) > 3 else vcc)

    def execute(w: Wave) -> None:
        value = np.empty((w.size, LANES), _U32)
        value[...] = a(w)
        np.copyto(value, b(w), where=mask(w))
        w.write_vector(to, value)

    return execute


@opcodes("v_pk_mov_b32")
def _packed_move(d: Decoding) -> Execute:
    """D[0] is S0's half op_sel[0], D[1] is S1's half op_sel[1]."""
    to = d.destination(2)
    select = d.instruction.bits_modifier("op_sel", 2, 0)
    # op_sel_hi has no meaning for the second half of the pair: D[1] takes op_sel[1].
    d.instruction.bits_modifier("op_sel_hi", 2, 1)
    a, b = (packed_half(op, half) for op, half in zip(d.operands[1:], select, strict=True))

    def execute(w: Wave) -> None:
        low, high = np.array(a(w)), np.array(b(w))
        w.write_vector(to, low)
        w.write_vector(to + 1, high)

    return execute


def packed_half(op, half: int, kind: str = "b32"):
    """One 32-bit half of a 64-bit operand, without modifiers."""
    if op.kind == "v":
        i = op.index + half
        return lambda w: w.v[i]
    if op.kind == "s":
        scalar = scalar_operand(type(op)("s", op.index + half))
        return lambda w: to_lanes32(scalar(w))
    if half:
        raise UnsupportedInstruction(f"the high half of constant {op.text}")
    return vector32(type(op)("constant", text=op.text), kind)
