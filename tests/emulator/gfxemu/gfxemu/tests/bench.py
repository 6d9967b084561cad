# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Execute single instructions through the real decoder.

A test module states its cases as a list, `Bench` assembles all of their instructions with one
llvm-mc process per arch, and each case then runs on a fresh wave of a batch of two workgroups.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import random
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from gfxemu import decoder
from gfxemu.checks import Checks
from gfxemu.decoder import Program
from gfxemu.disassembler import LlvmMc
from gfxemu.float_environment import Float32Denormals
from gfxemu.lds import Lds
from gfxemu.memory import Memory
from gfxemu.wave import EXEC, Wave
from gfxemu.workgroup import WorkgroupBatch

LANES, WORKGROUPS = 64, 2
TOTAL = LANES * WORKGROUPS
FULL = (1 << LANES) - 1
PARTIAL = 0xF0F0_0000_8000_0005  # some lanes of either half, not lane 1
MASKS = (FULL, PARTIAL)
POISON = 0x7FF1_7FF1
VGPRS, ACCUM_OFFSET = 512, 256
_LDS_BYTES, _SCRATCH_BYTES = 4096, 256


@functools.cache
def _assembled(lines: tuple[str, ...], arch: str) -> Program:
    decoder.load_all()
    tool = LlvmMc.from_environment()
    listing = tool.disassemble(tool.assemble(lines, arch), arch)
    assert len(listing) == len(lines), "every line must assemble to one instruction"
    return decoder.decode(listing, arch, VGPRS, ACCUM_OFFSET)


class Bench:
    """The instructions of a test module, each executable by its text."""

    def __init__(self, lines: Iterable[str], arch: str = "gfx942"):
        self._lines = tuple(dict.fromkeys(lines))
        self._index = {line: i for i, line in enumerate(self._lines)}
        self._arch = arch

    def program(self) -> Program:
        return _assembled(self._lines, self._arch)

    def name(self, line: str) -> str:
        """The opcode as decoder.implemented() spells it."""
        instruction = self.program().instructions[self._index[line]]
        other = instruction.encoding in ("sdwa", "dpp", "relative")
        return instruction.name + (f"_{instruction.encoding}" if other else "")

    def run(self, line: str, wave: Wave) -> int | None:
        with np.errstate(all="ignore"):
            wave.group.denormals.flush(wave.flush_denormals)
            try:
                return self.program().functions[self._index[line]](wave)
            finally:
                wave.group.denormals.flush(False)

    def names(self) -> set[str]:
        return {self.name(line) for line in self._lines}


def make_wave(exec_mask: int = FULL, *, flush: bool = False, late: bool = False,
              memory: Memory | None = None, waves: int = 1) -> Wave:  # fmt: skip
    lds = Lds(WORKGROUPS, _LDS_BYTES, POISON)
    program = Program("gfx942", [], [])
    ids = [(i, 0, 0) for i in range(WORKGROUPS)]
    batch = WorkgroupBatch(ids, program, memory or Memory(), lds, _denormals(), None, Checks())
    for index in range(waves):
        batch.add_wave(Wave(batch, index, WORKGROUPS, VGPRS, _SCRATCH_BYTES, POISON, late))
    wave = batch.waves[0]
    wave.flush_denormals = flush
    wave.write64(EXEC, exec_mask)
    return wave


@functools.cache
def _denormals() -> Float32Denormals:
    return Float32Denormals()


def set_vector(wave: Wave, register: int, values: Sequence[int], bits: int = 32) -> None:
    """One value per lane of both workgroups; 64-bit values take two registers."""
    for part in range(bits // 32):
        words = [v >> (32 * part) & 0xFFFF_FFFF for v in values]
        wave.v[register + part][...] = np.array(words, np.uint32).reshape(WORKGROUPS, LANES)


def get_vector(wave: Wave, register: int, bits: int = 32) -> list[int]:
    total = [0] * TOTAL
    for part in range(bits // 32):
        for i, word in enumerate(wave.v[register + part].reshape(-1).tolist()):
            total[i] |= word << (32 * part)
    return total


def get_mask(wave: Wave, register: int) -> list[int]:
    """The bit of each lane."""
    value = wave.read64(register)
    words = [value] * WORKGROUPS if type(value) is int else value.tolist()
    return [words[i // LANES] >> (i % LANES) & 1 for i in range(TOTAL)]


def active(exec_mask: int) -> list[bool]:
    return [bool(exec_mask >> (i % LANES) & 1) for i in range(TOTAL)]


def combinations(pools: Sequence[Sequence[int]], seed: int = 7) -> list[tuple[int, ...]]:
    """Tuples of operands, a multiple of TOTAL: every value of every pool with every other of its
    neighbour, as far as a few hundred tuples go, plus random ones."""
    rng = random.Random(seed)
    tuples = list(itertools.product(*pools))
    if len(tuples) > 8 * TOTAL:
        tuples = [tuple(rng.choice(p) for p in pools) for _ in range(6 * TOTAL)]
        tuples += [tuple(p[i % len(p)] for p in pools) for i in range(TOTAL)]
    while len(tuples) % TOTAL:
        tuples.append(tuple(rng.choice(p) for p in pools))
    return tuples


@dataclasses.dataclass(frozen=True)
class VectorCase:
    """An instruction `D, S...` whose lanes are independent.

    `sources` are (register, bits, values) and `expected` maps one tuple of source values and the
    old destination to the new one; `agree` compares encodings.
    """

    line: str
    sources: tuple[tuple[int, int, Sequence[int]], ...]
    expected: Callable[..., int]
    destination: int = 10
    bits: int = 32
    agree: Callable[[int, int], bool] = lambda actual, expected: actual == expected
    flush: bool = False
    uses_old: bool = False

    def __str__(self) -> str:
        return self.line.replace(" ", "_") + ("_flush" if self.flush else "")


_OLD = 0xABCD_EF01_2345_6789


def check_vector(bench: Bench, case: VectorCase) -> None:
    tuples = combinations([values for _, _, values in case.sources])
    old = _OLD & ((1 << case.bits) - 1)
    for exec_mask in MASKS:
        lanes = active(exec_mask)
        for first in range(0, len(tuples), TOTAL):
            chunk = tuples[first : first + TOTAL]
            wave = make_wave(exec_mask, flush=case.flush)
            set_vector(wave, case.destination, [old] * TOTAL, case.bits)
            for position, (register, bits, _) in enumerate(case.sources):
                set_vector(wave, register, [t[position] for t in chunk], bits)
            assert bench.run(case.line, wave) is None
            result = get_vector(wave, case.destination, case.bits)
            for lane, values in enumerate(chunk):
                if not lanes[lane]:
                    assert result[lane] == old, f"{case.line}: inactive lane {lane} changed"
                    continue
                arguments = (*values, old) if case.uses_old else values
                expected = case.expected(*arguments)
                assert case.agree(result[lane], expected), (
                    f"{case.line}: operands {[hex(v) for v in values]} gave {result[lane]:#x}, "
                    f"expected {expected:#x} (lane {lane}, exec {exec_mask:#x})"
                )
        if exec_mask == PARTIAL:
            break
