# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Matrix instructions: D = A x B + C with float16 or bfloat16 inputs and float32 sums.

CDNA3 ISA, "Matrix Arithmetic Instructions". For an N x N x K instruction the 64 lanes form
64/N groups of N. Lane n of group g holds, of row n of A (of column n of B), the elements
k = g * K/G .. (g+1) * K/G - 1 in consecutive registers, two to a register. The result has, for
32x32, row 8*(i/4) + 4*(lane/32) + i%4 and column lane%32 in register i; for 16x16, row
4*(lane/16) + i and column lane%16.

EXEC is ignored. Products are exact; each sum is formed in float64 and rounded once to float32.
The hardware's internal order and intermediate rounding are not documented; results agree within
the float32 error of the sum.
"""

from __future__ import annotations

import re

import numpy as np

from gfxemu.decoder import Decoding, Execute, opcodes
from gfxemu.errors import UnsupportedInstruction
from gfxemu.operands import constant_bits
from gfxemu.wave import LANES, Wave

_SHAPES = re.compile(r"v_mfma_f32_(\d+)x\d+x(\d+)_(f16|bf16)$")


def _inputs(w: Wave, first: int, registers: int, kind: str, n: int) -> np.ndarray:
    """One operand as float32 [workgroup][row][k]."""
    raw = w.regs[first : first + registers]  # [register][workgroup][lane]
    if kind == "f16":
        pairs = raw.view(np.float16).astype(np.float32)
    else:
        pairs = (raw.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    groups = LANES // n
    pairs = pairs.reshape(registers, w.size, groups, n, 2)
    return pairs.transpose(1, 3, 2, 0, 4).reshape(w.size, n, groups * registers * 2)


def _from_matrix(matrix: np.ndarray, n: int) -> np.ndarray:
    size = matrix.shape[0]
    groups, count = LANES // n, n * n // LANES
    block = matrix.reshape(size, count // 4, groups, 4, n)
    return block.transpose(1, 3, 0, 2, 4).reshape(count, size, LANES)


@opcodes("v_mfma_f32_32x32x8_f16", "v_mfma_f32_32x32x8_bf16", "v_mfma_f32_16x16x16_f16",
         "v_mfma_f32_16x16x16_bf16", "v_mfma_f32_32x32x16_f16", "v_mfma_f32_32x32x16_bf16",
         "v_mfma_f32_16x16x32_f16", "v_mfma_f32_16x16x32_bf16")  # fmt: skip
def _mfma(d: Decoding) -> Execute:
    match = _SHAPES.match(d.name)
    assert match
    n, k, kind = int(match[1]), int(match[2]), match[3]
    registers, results = k * n // LANES // 2, n * n // LANES
    if d.arch == "gfx942" and k * n > 256:
        raise UnsupportedInstruction(f"{d.name} exists on gfx950 only")
    to = d.destination(results)
    a, b = d.vector_range(d.operands[1], registers), d.vector_range(d.operands[2], registers)
    c_operand = d.operands[3]
    if c_operand.kind == "constant":
        c, constant = None, np.uint32(constant_bits(c_operand.text, "f32")).view(np.float32)
    else:
        c, constant = d.vector_range(c_operand, results), np.float32(0)

    def execute(w: Wave) -> None:
        denormals = w.group.denormals
        denormals.flush(False)  # matrix instructions keep denormals whatever MODE says
        x, y = _inputs(w, a, registers, kind, n), _inputs(w, b, registers, kind, n)
        product = _from_matrix(
            np.matmul(x.astype(np.float64), y.astype(np.float64).transpose(0, 2, 1)), n
        )
        addend = constant if c is None else w.regs[c : c + results].view(np.float32)
        w.regs[to : to + results] = (product + addend).astype(np.float32).view(np.uint32)
        denormals.flush(w.flush_denormals)

    return execute
