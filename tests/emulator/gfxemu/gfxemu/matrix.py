# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Matrix instructions: D = A x B + C with float16, bfloat16 or E4M3 inputs and float32 sums, or
with 8-bit integers and 32-bit sums.

CDNA3 ISA, "Matrix Arithmetic Instructions". For an N x N x K instruction the 64 lanes form
64/N groups of N. Lane n of group g holds, of row n of A (of column n of B), the elements
k = g * K/G .. (g+1) * K/G - 1 in consecutive registers, two to a register, or four of 8 bits. The
result has, for 32x32, row 8*(i/4) + 4*(lane/32) + i%4 and column lane%32 in register i; for 16x16,
row 4*(lane/16) + i and column lane%16.

Which k an element has is nowhere but in this agreement of A with B, so it shows in no result.

EXEC is ignored. Products are exact; each sum is formed in float64 and rounded once to float32.
gfx90a takes and gives zero for denormals in any MODE; later ones keep them.
The hardware's internal order and intermediate rounding are not documented; results agree within
the float32 error of the sum.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from gfxemu import float8
from gfxemu.decoder import Decoding, Execute, opcodes
from gfxemu.errors import UnsupportedInstruction
from gfxemu.operands import constant_bits
from gfxemu.vector_float import flush
from gfxemu.wave import LANES, Wave

# gfx90a writes ...x8f16 and ...x8bf16_1k.
_SHAPES = re.compile(r"v_mfma_f32_(\d+)x\d+x(\d+)_?(f16|bf16|fp8_fp8|f8f6f4)(?:_1k)?$")


def _lanes_by_result(n: int) -> np.ndarray:
    """The lanes of A, so that rows of the product come in the order of the result's registers."""
    groups = LANES // n
    rows = np.arange(n).reshape(-1, groups, 4).transpose(0, 2, 1).reshape(-1)
    return (np.arange(groups)[:, None] * n + rows).reshape(-1)


_A_LANES = {n: _lanes_by_result(n) for n in (16, 32)}
_LEAST_NORMAL = {"f16": 2.0**-14, "bf16": 2.0**-126}
Decode = Callable[[np.ndarray], np.ndarray]  # of the encodings of bytes
_SHIFT16, _HIGH16 = np.uint32(16), np.uint32(0xFFFF_0000)


def _bytes(raw: np.ndarray, numbers_of: Decode, n: int) -> np.ndarray:
    """[register][workgroup][lane], four numbers each, as float64 [workgroup][k][row]."""
    registers, size, _ = raw.shape
    groups = LANES // n
    numbers = numbers_of(np.ascontiguousarray(raw).view(np.uint8))
    by_place = numbers.reshape(registers, size, groups, n, 4).transpose(1, 2, 0, 4, 3)
    return by_place.reshape(size, groups * registers * 4, n)


def _halves(raw: np.ndarray, kind: str, n: int) -> np.ndarray:
    """The same of two numbers each."""
    registers, size, _ = raw.shape
    groups = LANES // n
    out = np.empty((size, groups, registers, 2, n))
    if kind == "f16":
        pairs = raw.view(np.float16).reshape(registers, size, groups, n, 2)
        out[...] = pairs.transpose(1, 2, 0, 4, 3)
    else:
        for half, bits in enumerate((raw << _SHIFT16, raw & _HIGH16)):
            floats = bits.view(np.float32).reshape(registers, size, groups, n)
            out[:, :, :, half] = floats.transpose(1, 2, 0, 3)
    return out.reshape(size, groups * registers * 2, n)


@opcodes("v_mfma_f32_32x32x8_f16", "v_mfma_f32_32x32x8_bf16", "v_mfma_f32_16x16x16_f16",
         "v_mfma_f32_16x16x16_bf16", "v_mfma_f32_32x32x16_f16", "v_mfma_f32_32x32x16_bf16",
         "v_mfma_f32_16x16x32_f16", "v_mfma_f32_16x16x32_bf16", "v_mfma_f32_32x32x16_fp8_fp8",
         "v_mfma_f32_16x16x32_fp8_fp8", "v_mfma_f32_32x32x8f16", "v_mfma_f32_32x32x8bf16_1k",
         "v_mfma_f32_16x16x16f16", "v_mfma_f32_16x16x16bf16_1k", "v_mfma_f32_32x32x64_f8f6f4",
         "v_mfma_f32_16x16x128_f8f6f4")  # fmt: skip
def _mfma(d: Decoding) -> Execute:
    match = _SHAPES.match(d.name)
    assert match
    n, k, kind = int(match[1]), int(match[2]), match[3]
    is_fp8 = kind in ("fp8_fp8", "f8f6f4")  # of f8f6f4, without modifiers both inputs are E4M3
    registers, results = k * n // LANES // (4 if is_fp8 else 2), n * n // LANES
    if d.arch != "gfx950" and k * n > (512 if is_fp8 else 256):
        raise UnsupportedInstruction(f"{d.name} exists on gfx950 only")
    to = d.destination(results)
    a, b = d.vector_range(d.operands[1], registers), d.vector_range(d.operands[2], registers)
    c_operand = d.operands[3]
    if c_operand.kind == "constant":
        c, constant = None, np.uint32(constant_bits(c_operand.text, "f32")).view(np.float32)
    else:
        c, constant = d.vector_range(c_operand, results), np.float32(0)

    a_lanes, form = _A_LANES[n], float8.of_arch(d.arch)
    least = _LEAST_NORMAL[kind] if d.arch == "gfx90a" else None

    def numbers(raw: np.ndarray) -> np.ndarray:
        return _bytes(raw, form.decode, n) if is_fp8 else _halves(raw, kind, n)

    def execute(w: Wave) -> None:
        denormals = w.group.denormals
        denormals.flush(False)  # matrix instructions keep denormals in any MODE
        regs = w.regs
        x = numbers(regs[a : a + registers].take(a_lanes, axis=2))
        y = numbers(regs[b : b + registers])
        if least is not None:
            for operand in (x, y):
                operand[np.abs(operand) < least] = 0
        # [workgroup][register][lane]
        total = np.matmul(x.transpose(0, 2, 1), y).reshape(w.size, results, LANES)
        addend = constant
        if c is not None:
            addend = regs[c : c + results].view(np.float32).transpose(1, 0, 2)
        if least is not None:
            addend = flush(addend)
        total += addend
        result = regs[to : to + results].view(np.float32)
        result[...] = total.transpose(1, 0, 2)
        if least is not None:
            result[...] = flush(result)
        denormals.flush(w.flush_denormals)

    return execute


@opcodes("v_mfma_i32_16x16x32_i8")
def _mfma_of_integers(d: Decoding) -> Execute:
    """Sums wrap. Those of products are exact in float64."""
    n, results = 16, 4
    to = d.destination(results)
    a, b = (d.vector_range(op, 2) for op in d.operands[1:3])
    c_operand = d.operands[3]
    is_constant = c_operand.kind == "constant"
    constant = np.int64(constant_bits(c_operand.text, "b32") if is_constant else 0)
    c = None if is_constant else d.vector_range(c_operand, results)
    a_lanes = _A_LANES[n]

    def numbers(raw: np.ndarray) -> np.ndarray:
        return _bytes(raw, lambda codes: codes.view(np.int8).astype(np.float64), n)

    def execute(w: Wave) -> None:
        regs = w.regs
        x = numbers(regs[a : a + 2].take(a_lanes, axis=2))
        y = numbers(regs[b : b + 2])
        products = np.matmul(x.transpose(0, 2, 1), y).reshape(w.size, results, LANES)
        total = products.transpose(1, 0, 2).astype(np.int64)
        total += constant if c is None else regs[c : c + results].astype(np.int64)
        regs[to : to + results] = total.astype(np.uint32)

    return execute
