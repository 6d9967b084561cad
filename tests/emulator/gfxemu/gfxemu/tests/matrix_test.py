# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Matrix instructions: layouts by exhaustive small integers, numerics by exact fractions.

The layout is restated here from the manual's formulas, element by element.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

from gfxemu.errors import UnsupportedInstruction
from gfxemu.tests import exact
from gfxemu.tests.bench import FULL, LANES, PARTIAL, WORKGROUPS, Bench, make_wave
from gfxemu.tests.exact import BF16, F16, F32
from gfxemu.wave import Wave

_SHAPES = {
    "gfx90a": [(32, 8), (16, 16)],
    "gfx942": [(32, 8), (16, 16)],
    "gfx950": [(32, 16), (16, 32)],
}


_D = 128  # first result register


def _line(n: int, k: int, kind: str, c: str = "") -> str:
    inputs = k * n // 128
    results = n * n // 64
    a = f"v[{16}:{16 + inputs - 1}]"
    b = f"v[{24}:{24 + inputs - 1}]"
    d = f"v[{_D}:{_D + results - 1}]"
    addend = c or f"v[{64}:{64 + results - 1}]"
    return f"v_mfma_f32_{n}x{n}x{k}_{kind} {d}, {a}, {b}, {addend}"


def _line_of(arch: str, *what: Any) -> str:
    """gfx90a spells the same shapes otherwise."""
    line = _line(*what)
    if arch != "gfx90a":
        return line
    return line.replace("_f16 ", "f16 ").replace("_bf16 ", "bf16_1k ")


_ACCUMULATE = "v_mfma_f32_32x32x8_f16 a[0:15], a[100:101], v[24:25], a[0:15]"
_OF_INTEGERS = [
    f"v_mfma_i32_16x16x32_i8 v[{_D}:{_D + 3}], a[16:17], v[24:25], {c}"
    for c in ("v[64:67]", "0", "-7")
]
_KINDS = {"f16": F16, "bf16": BF16}
BENCHES = {
    arch: Bench(
        [
            _line_of(arch, n, k, kind, c)
            for n, k in shapes
            for kind in _KINDS
            for c in ("", "0", "1.0")
        ]
        + ([_ACCUMULATE, *_OF_INTEGERS] if arch == "gfx942" else []),
        arch,
    )
    for arch, shapes in _SHAPES.items()
}
_CASES = [(arch, *s, kind) for arch, shapes in _SHAPES.items() for s in shapes for kind in _KINDS]


def TESTED() -> set[str]:
    return set().union(*(bench.names() for bench in BENCHES.values()))


def _input_place(n: int, k_total: int, row: int, k: int) -> tuple[int, int, int]:
    """(lane, register, half) of element [row][k] of A, or [k][row] of B."""
    per_lane = k_total * n // 64
    lane = row + n * (k // per_lane)
    return lane, k % per_lane // 2, k % 2


def _result_place(n: int, row: int, column: int) -> tuple[int, int]:
    """(lane, register) of element [row][column] of C and D."""
    if n == 32:
        return column + 32 * (row // 4 % 2), 4 * (row // 8) + row % 4
    return column + 16 * (row // 4), row % 4


def _put_input(
    wave: Wave, first: int, group: int, n: int, k_total: int, values: list[list[int]]
) -> None:
    for row in range(n):
        for k in range(k_total):
            lane, register, half = _input_place(n, k_total, row, k)
            word = int(wave.v[first + register][group, lane])
            word = word & ~(0xFFFF << 16 * half) | values[row][k] << 16 * half
            wave.v[first + register][group, lane] = word


def _put_result(wave: Wave, first: int, group: int, n: int, values: list[list[int]]) -> None:
    for row in range(n):
        for column in range(n):
            lane, register = _result_place(n, row, column)
            wave.v[first + register][group, lane] = values[row][column]


def _get_result(wave: Wave, first: int, group: int, n: int) -> list[list[int]]:
    out = []
    for row in range(n):
        places = [_result_place(n, row, column) for column in range(n)]
        out.append([int(wave.v[first + register][group, lane]) for lane, register in places])
    return out


def _integers(rng: random.Random, rows: int, columns: int, form: exact.Format) -> list[list[int]]:
    def bits() -> int:
        return exact.encode(exact.from_fraction(Fraction(rng.randint(-8, 8))), form)

    return [[bits() for _ in range(columns)] for _ in range(rows)]


def _value(bits: int, form: exact.Format, flush: bool = False) -> Fraction:
    return exact.decode(bits, form, flush).value


@pytest.mark.parametrize("exec_mask", [FULL, PARTIAL])
@pytest.mark.parametrize(("arch", "n", "k", "kind"), _CASES)
def test_layout(arch: str, n: int, k: int, kind: str, exec_mask: int) -> None:
    """Small integers, where every order of summation is exact; EXEC is ignored."""
    form, rng = _KINDS[kind], random.Random(n * k)
    wave = make_wave(exec_mask)
    matrices = []
    for group in range(WORKGROUPS):
        a, b = _integers(rng, n, k, form), _integers(rng, n, k, form)
        c = _integers(rng, n, n, F32)
        _put_input(wave, 16, group, n, k, a)
        _put_input(wave, 24, group, n, k, b)
        _put_result(wave, 64, group, n, c)
        matrices.append((a, b, c))
    for addend, start in (("", None), ("0", 0), ("1.0", 1)):
        BENCHES[arch].run(_line_of(arch, n, k, kind, addend), wave)
        for group, (a, b, c) in enumerate(matrices):
            result = _whole(_get_result(wave, _D, group, n), F32)
            a, b, c = _whole(a, form), _whole(b, form), _whole(c, F32)
            for i in range(n):
                for j in range(n):
                    total = c[i][j] if start is None else start
                    total += sum(a[i][x] * b[j][x] for x in range(k))
                    assert result[i][j] == total, (group, i, j, addend)


def _whole(matrix: list[list[int]], form: exact.Format) -> list[list[int]]:
    known: dict[int, int] = {}

    def number(bits: int) -> int:
        if bits not in known:
            value = _value(bits, form)
            assert value.denominator == 1
            known[bits] = int(value)
        return known[bits]

    return [[number(bits) for bits in row] for row in matrix]


def _uniform(wave: Wave, n: int, k: int, a: list[int], b: list[int], c: int) -> None:
    """Every row of A is `a`, every column of B is `b`, C is `c` everywhere."""
    for group in range(WORKGROUPS):
        _put_input(wave, 16, group, n, k, [a] * n)
        _put_input(wave, 24, group, n, k, [b] * n)
        _put_result(wave, 64, group, n, [[c] * n] * n)


def _run_uniform(arch: str, n: int, k: int, kind: str, a: list[int], b: list[int], c: int) -> int:
    wave = make_wave(flush=True)  # MODE's flushing does not reach matrix instructions
    _uniform(wave, n, k, a, b, c)
    BENCHES[arch].run(_line_of(arch, n, k, kind), wave)
    results = {int(x) for r in range(n * n // LANES) for x in wave.v[_D + r].reshape(-1)}
    assert len(results) == 1
    return results.pop()


@pytest.mark.parametrize(("arch", "n", "k", "kind"), _CASES)
def test_numerics(arch: str, n: int, k: int, kind: str) -> None:
    form = _KINDS[kind]
    one, zero = exact.encode(exact.from_fraction(Fraction(1)), form), 0
    f32 = lambda x: exact.encode(exact.from_fraction(Fraction(x)), F32)  # noqa: E731

    def run(a: dict[int, int], b: dict[int, int], c: int) -> int:
        left = [a.get(i, zero) for i in range(k)]
        right = [b.get(i, zero) for i in range(k)]
        return _run_uniform(arch, n, k, kind, left, right, c)

    tiny = 1  # the smallest denormal of the input format
    smallest = exact.decode(tiny, form).magnitude
    if arch == "gfx90a":
        # Denormals of the inputs, of the addend and of the sum are zero.
        assert run({0: tiny}, {0: one}, 0) == 0
        assert run({}, {}, 0x00000123) == 0
        assert run({0: one}, {0: one | form.sign}, 0x3F800000) == 0
        assert run({0: one}, {0: tiny}, 0x00800000) == 0x00800000
    else:
        assert run({0: tiny}, {0: one}, 0) == exact.encode(exact.from_fraction(smallest), F32)
        assert run({k - 1: tiny}, {k - 1: tiny}, 0) == exact.encode(
            exact.from_fraction(smallest**2), F32
        )
        # A denormal sum and a denormal addend stay.
        assert run({}, {}, 0x00000123) == 0x00000123
    # The largest inputs: exact in float32 for float16, infinite for bfloat16 sums.
    largest = form.infinity - 1
    magnitude = exact.decode(largest, form).magnitude
    wanted = exact.encode(exact.from_fraction(2 * magnitude**2), F32)
    assert run({0: largest, 1: largest}, {0: largest, 1: largest}, 0) == wanted
    # Infinity, opposite infinities, infinity times zero.
    assert run({0: form.infinity}, {0: one}, 0) == F32.infinity
    assert run({0: form.infinity}, {0: one | form.sign}, f32(5)) == F32.infinity | F32.sign
    for a, b, c in (
        ({0: form.infinity, 1: form.infinity}, {0: one, 1: one | form.sign}, 0),
        ({0: form.infinity}, {0: zero}, 0),
        ({0: form.nan}, {0: one}, 0),
        ({0: one}, {0: one}, F32.nan),
    ):
        assert exact.decode(run(a, b, c), F32).is_nan
    # One rounding, to nearest even: 2**24 + 1 is halfway, the sum of two halves is not lost.
    assert run({0: one}, {0: one}, f32(2**24)) == f32(2**24)
    assert run({0: one, 1: one}, {0: one, 1: one}, f32(2**24)) == f32(2**24 + 2)
    assert run({i: one for i in range(k)}, {i: one for i in range(k)}, f32(2**24)) == f32(2**24 + k)


@pytest.mark.parametrize(("arch", "n", "k", "kind"), _CASES)
def test_rounding_of_random_sums(arch: str, n: int, k: int, kind: str) -> None:
    """Within one unit in the last place of the exact sum, in any order."""
    form, rng = _KINDS[kind], random.Random(5)
    for _ in range(4):
        bits = lambda: rng.randrange(0, form.infinity) // 2 | rng.choice((0, form.sign))  # noqa: E731
        a, b = [bits() for _ in range(k)], [bits() for _ in range(k)]
        c = exact.encode(exact.from_fraction(Fraction(rng.randint(-999, 999), 7)), F32)
        flush = arch == "gfx90a"
        pairs = zip(a, b, strict=True)
        total = _value(c, F32) + sum(
            (_value(x, form, flush) * _value(y, form, flush) for x, y in pairs), Fraction(0)
        )
        wanted = exact.encode(exact.from_fraction(total), F32)
        assert exact.within_ulps(_run_uniform(arch, n, k, kind, a, b, c), wanted, F32, 1)


def test_accumulation_registers_as_inputs() -> None:
    """A may lie in AccVGPRs, and C may be D."""
    wave = make_wave()
    _uniform(wave, 32, 8, [0x3C00] * 8, [0x4000] * 8, 0)
    for register in range(2):
        wave.v[256 + 100 + register][...] = wave.v[16 + register]
    for register in range(16):
        wave.v[256 + register][...] = 0x40A00000
    BENCHES["gfx942"].run(_ACCUMULATE, wave)
    assert {int(x) for r in range(16) for x in wave.v[256 + r].reshape(-1)} == {0x41A80000}


def test_gfx950_shapes_do_not_exist_on_gfx942() -> None:
    from gfxemu import decoder
    from gfxemu.disassembler import LlvmMc

    tool = LlvmMc.from_environment()
    line = _line(32, 16, "f16")
    listing = tool.disassemble(tool.assemble([line], "gfx950"), "gfx950")
    with pytest.raises(UnsupportedInstruction, match="gfx950 only"):
        decoder.decode(listing, "gfx942", 512, 256)


@pytest.mark.parametrize("exec_mask", [FULL, PARTIAL])
@pytest.mark.parametrize("line", _OF_INTEGERS)
def test_integers(line: str, exec_mask: int) -> None:
    """All bytes, with a sum that wraps; lane n of group g holds 8 elements of row n."""
    rng, n, k = random.Random(3), 16, 32
    wave = make_wave(exec_mask)
    rows = [[[rng.randint(-128, 127) for _ in range(k)] for _ in range(n)] for _ in range(2)]
    rows[0][0] = rows[1][0] = [-128] * k
    for first, matrix in ((256 + 16, rows[0]), (24, rows[1])):
        for row in range(n):
            for place in range(k // 4):
                word = sum((matrix[row][4 * place + i] & 0xFF) << 8 * i for i in range(4))
                wave.v[first + place % 2][:, row + n * (place // 2)] = word
    for register in range(4):
        wave.v[64 + register][...] = 0x7FFF_FFFF - register
    BENCHES["gfx942"].run(line, wave)
    for row in range(n):
        for column in range(n):
            lane, register = _result_place(n, row, column)
            addend = 0x7FFF_FFFF - register if line.endswith("]") else int(line.rpartition(" ")[2])
            total = addend + sum(rows[0][row][i] * rows[1][column][i] for i in range(k))
            for group in range(WORKGROUPS):
                assert int(wave.v[_D + register][group, lane]) == total % 2**32
