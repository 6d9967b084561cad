# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Sub-dword addressing: VOP1, VOP2 and VOPC whose operands are bytes or words of registers.

CDNA3 ISA, "SDWA": a source selects BYTE_n, WORD_n or DWORD, zero- or sign-extended; the result
goes to the selected part of D, and the rest of D is zero (UNUSED_PAD), the sign of the result
(UNUSED_SEXT) or kept (UNUSED_PRESERVE).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gfxemu import float8, vector_float, vector_integer, vector_lanes
from gfxemu.decoder import Decoding, Execute, opcodes
from gfxemu.errors import UnsupportedInstruction
from gfxemu.operands import Operand, lane_mask, vector32
from gfxemu.wave import Wave

Array = np.ndarray
Read = Callable[[Wave], Array]
_U32 = np.uint32


def _selection(text: str) -> tuple[int, int]:
    """(shift, bits) of BYTE_n, WORD_n, DWORD."""
    kind, _, number = text.partition("_")
    bits = {"BYTE": 8, "WORD": 16, "DWORD": 32}[kind]
    return int(number or 0) * bits, bits


def _source(d: Decoding, position: int, op: Operand) -> Read:
    shift, bits = _selection(d.instruction.text_modifier(f"src{position}_sel", "DWORD"))
    if (op.negate or op.absolute) and "f16" not in d.name and "f32" not in d.name:
        raise UnsupportedInstruction(f"modifier of an integer operand: {d.instruction!r}")
    plain = vector32(Operand(op.kind, op.index, op.count, op.text))
    if bits == 32:
        read: Read = plain
    elif op.sign_extend:
        left, right = _U32(32 - bits - shift), np.int32(32 - bits)
        read = lambda w: ((plain(w) << left).view(np.int32) >> right).view(_U32)  # noqa: E731
    else:
        right_shift, mask = _U32(shift), _U32((1 << bits) - 1)
        read = lambda w: (plain(w) >> right_shift) & mask  # noqa: E731
    # Float modifiers act on the selected value: its sign bit is the top bit of its own width.
    sign = _U32(0x8000 if "f32_f16" in d.name or d.name.endswith("f16") else 0x8000_0000)
    if op.absolute:
        inner = read
        read = lambda w: inner(w) & ~sign  # noqa: E731
    if op.negate:
        outer = read
        read = lambda w: outer(w) ^ sign  # noqa: E731
    return read


def _destination(d: Decoding) -> Callable[[Wave, Array], None]:
    to = d.destination()
    shift, bits = _selection(d.instruction.text_modifier("dst_sel", "DWORD"))
    unused = d.instruction.text_modifier("dst_unused", "UNUSED_PRESERVE" if bits < 32 else "")
    if bits == 32:
        return lambda w, value: w.write_vector(to, value)
    mask = _U32(((1 << bits) - 1) << shift)
    move, up = _U32(shift), np.int32(shift)
    extend = np.int32(32 - bits)

    def write(w: Wave, value: Array) -> None:
        placed = (value << move) & mask
        if unused == "UNUSED_PRESERVE":
            placed = placed | (w.v[to] & ~mask)
        elif unused == "UNUSED_SEXT":
            signed = (value << _U32(32 - bits)).view(np.int32) >> extend
            placed = (signed << up).view(_U32)
        w.write_vector(to, placed)

    return write


_UNARY: dict[str, Callable[[Array], Array]] = {
    "v_mov_b32": vector_integer.UNARY["v_mov_b32"],
    "v_not_b32": vector_integer.UNARY["v_not_b32"],
    "v_cvt_f32_u32": lambda a: a.astype(np.float32).view(_U32),
    "v_cvt_f32_i32": lambda a: a.view(np.int32).astype(np.float32).view(_U32),
    "v_cvt_f32_f16": lambda a: a.astype(np.uint16).view(np.float16).astype(np.float32).view(_U32),
    "v_cvt_f16_f32": lambda a: vector_float.half_bits(a.view(np.float32).astype(np.float16)),
}


@opcodes(*_UNARY, form="sdwa")
def _unary(d: Decoding) -> Execute:
    function, write, a = _UNARY[d.name], _destination(d), _source(d, 0, d.operands[1])
    return lambda w: write(w, function(a(w)))


@opcodes("v_cvt_f32_fp8", form="sdwa")
def _float8(d: Decoding) -> Execute:
    form, write, a = float8.of_arch(d.arch), _destination(d), _source(d, 0, d.operands[1])
    return lambda w: write(w, form.decode(a(w) & _U32(0xFF)).astype(np.float32).view(_U32))


@opcodes("v_cvt_pk_f32_fp8", form="sdwa")
def _float8_pair(d: Decoding) -> Execute:
    """Of a word, whose low byte becomes the first register."""
    form, to, a = float8.of_arch(d.arch), d.destination(2), _source(d, 0, d.operands[1])

    def execute(w: Wave) -> None:
        pair = a(w)
        high = form.decode(pair >> _U32(8) & _U32(0xFF))
        w.write_float(to, form.decode(pair & _U32(0xFF)).astype(np.float32))
        w.write_float(to + 1, high.astype(np.float32))

    return execute


_INTEGER_BINARY = [
    n for n in vector_integer.BINARY
    if n not in ("v_add_i32", "v_sub_i32", "v_mul_lo_u32", "v_mul_hi_u32", "v_mul_hi_i32",
                 "v_bcnt_u32_b32", "v_bfm_b32")
]  # fmt: skip


@opcodes(*_INTEGER_BINARY, form="sdwa")
def _binary(d: Decoding) -> Execute:
    function, write = vector_integer.BINARY[d.name], _destination(d)
    a, b = (_source(d, i, op) for i, op in enumerate(d.operands[1:]))
    return lambda w: write(w, function(a(w), b(w)))


@opcodes("v_add_f32", "v_sub_f32", "v_mul_f32", "v_max_f32", "v_min_f32", form="sdwa")
def _float_binary(d: Decoding) -> Execute:
    function, write = vector_float.BINARY[d.name], _destination(d)
    a, b = (_source(d, i, op) for i, op in enumerate(d.operands[1:]))

    def execute(w: Wave) -> None:
        r = function(a(w).view(np.float32), b(w).view(np.float32))
        write(w, np.asarray(r).view(_U32))

    return execute


@opcodes(*(n for n in vector_lanes.INTEGER_COMPARES if not n.endswith("64")), form="sdwa")
def _compare(d: Decoding) -> Execute:
    store, function = vector_lanes.mask_destination(d), vector_lanes.compare_function(d.name)
    a, b = (_source(d, i, op) for i, op in enumerate(d.operands[1:]))
    return lambda w: store(w, np.asarray(function(a(w), b(w))))


@opcodes("v_cndmask_b32", form="sdwa")
def _conditional(d: Decoding) -> Execute:
    write, mask = _destination(d), lane_mask(d.operands[3])
    a, b = (_source(d, i, op) for i, op in enumerate(d.operands[1:3]))
    return lambda w: write(w, np.where(mask(w), b(w), a(w)))
