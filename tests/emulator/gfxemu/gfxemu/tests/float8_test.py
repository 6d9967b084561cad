# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""E4M3: every encoding, conversions by search among all numbers, matrix layouts element by element.

The value of each encoding is restated here from the formats' definitions, in fractions.
"""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from gfxemu.errors import UnsupportedInstruction
from gfxemu.tests import exact
from gfxemu.tests.bench import LANES, WORKGROUPS, Bench, VectorCase, check_vector, make_wave
from gfxemu.tests.exact import EDGE_F32, EDGE_U32, F32, M32

_ARCHS = ("gfx942", "gfx950")
_BIAS = {"gfx942": 8, "gfx950": 7}
_NANS = {"gfx942": (0x80,), "gfx950": (0x7F, 0xFF)}


def _value(code: int, arch: str) -> Fraction | None:
    """None: not a number."""
    if code in _NANS[arch]:
        return None
    exponent, fraction = code >> 3 & 15, code & 7
    significand = fraction + 8 if exponent else fraction
    magnitude = significand * Fraction(2) ** (max(exponent, 1) - _BIAS[arch] - 3)
    return -magnitude if code & 0x80 else magnitude


def _nan(negative: bool, arch: str) -> int:
    return _NANS[arch][-1] if negative else _NANS[arch][0]


def _encode(bits: int, arch: str) -> int:
    """The nearest encoding of a float32; of two as near, the even one."""
    number = exact.decode(bits, F32)
    if number.special:
        return _nan(number.negative, arch)
    # One more than there is, to round to: it is what overflows.
    positive = [(_value(code, arch), code) for code in range(0x80) if code not in _NANS[arch]]
    beyond = positive[-1][0] + (positive[-1][0] - positive[-2][0])
    nearest = min(
        [*positive, (beyond, positive[-1][1] + 1)],
        key=lambda entry: (abs(entry[0] - number.magnitude), entry[1] & 1),
    )
    if nearest[0] == beyond:
        return _nan(number.negative, arch)
    negative_zero = arch == "gfx950"
    return nearest[1] | (0x80 if number.negative and (nearest[1] or negative_zero) else 0)


def _to_float(code: int, arch: str) -> int:
    value = _value(code, arch)
    if value is None:
        return F32.nan
    return exact.encode(exact.from_fraction(value, code == 0x80), F32)


def _pair_to_floats(codes: int, arch: str) -> int:
    return _to_float(codes & 0xFF, arch) | _to_float(codes >> 8, arch) << 32


def _float_of(value: Fraction) -> int:
    return exact.encode(exact.from_fraction(value), F32)


def _pool(arch: str) -> list[int]:
    """Numbers of the format, what is between two of them, and on either side of that."""
    out = list(EDGE_F32)
    for code in (0, 1, 2, 6, 7, 8, 9, 0x37, 0x38, 0x3F, 0x40, 0x75, 0x76, 0x7D, 0x7E):
        low, high = _value(code, arch), _value(code + 1, arch)
        if high is None:
            high = low + 32
        middle = _float_of((low + high) / 2)
        out += [_float_of(low), middle, middle - 1, middle + 1, middle | F32.sign]
    # Where rounding begins to overflow.
    return [*out, _float_of(Fraction(248)), _float_of(Fraction(464)), _float_of(Fraction(465))]


def _same(actual: int, expected: int) -> bool:
    return exact.same_float(actual, expected, F32)


def _same_pair(actual: int, expected: int) -> bool:
    return _same(actual & M32, expected & M32) and _same(actual >> 32, expected >> 32)


def _cases(arch: str) -> list[VectorCase]:
    pool = _pool(arch)
    sources = ((1, 32, pool), (2, 32, pool[::-7]))

    def pair(a: int, b: int) -> int:
        return _encode(a, arch) | _encode(b, arch) << 8

    codes = tuple(range(256))
    return [
        VectorCase(
            "v_cvt_pk_fp8_f32 v10, v1, v2",
            sources,
            lambda a, b, old: old & 0xFFFF_0000 | pair(a, b),
            uses_old=True,
        ),
        VectorCase(
            "v_cvt_pk_fp8_f32 v10, -v1, |v2| op_sel:[0,0,1]",
            sources,
            lambda a, b, old: old & 0xFFFF | pair(a ^ F32.sign, b & ~F32.sign) << 16,
            uses_old=True,
        ),
        VectorCase(
            "v_cvt_f32_fp8 v10, v1",
            ((1, 32, [code | 0xABCDEF00 for code in codes]),),
            lambda a: _to_float(a & 0xFF, arch),
            agree=_same,
        ),
    ]


def _of_parts(arch: str) -> list[VectorCase]:
    bytes_of = [
        VectorCase(
            f"v_cvt_f32_fp8_sdwa v10, v1 src0_sel:BYTE_{byte}",
            ((1, 32, EDGE_U32),),
            lambda a, byte=byte: _to_float(a >> 8 * byte & 0xFF, arch),
            agree=_same,
        )
        for byte in range(4)
    ]
    pairs = [c | c * 37 % 256 << 8 | c * 5 % 256 << 16 | c << 24 for c in range(256)]
    words_of = [
        VectorCase(
            f"v_cvt_pk_f32_fp8_sdwa v[10:11], v1 src0_sel:WORD_{word}",
            ((1, 32, pairs),),
            lambda a, word=word: _pair_to_floats(a >> 16 * word & 0xFFFF, arch),
            bits=64,
            agree=_same_pair,
        )
        for word in range(2)
    ]
    return bytes_of + words_of


_CASES = [(arch, case) for arch in _ARCHS for case in _cases(arch) + _of_parts(arch)]

_SHAPES = {
    "gfx942": ((32, 16), (16, 32)), "gfx950": ((32, 16), (16, 32), (32, 64), (16, 128)),
}  # fmt: skip
_MATRICES = [(arch, *shape) for arch, shapes in _SHAPES.items() for shape in shapes]
_A, _B, _C, _D = 16, 24, 64, 128


def _registers(n: int, k: int) -> int:
    """Of an input."""
    return n * k // LANES // 4


def _line(n: int, k: int, addend: str = "") -> str:
    results, last = n * n // LANES, _registers(n, k) - 1
    c = addend or f"v[{_C}:{_C + results - 1}]"
    kind = "f8f6f4" if last > 1 else "fp8_fp8"
    return (
        f"v_mfma_f32_{n}x{n}x{k}_{kind} v[{_D}:{_D + results - 1}], "
        f"v[{_A}:{_A + last}], v[{_B}:{_B + last}], {c}"
    )


_LOW_OF_A_SOURCE = "v_cvt_pk_fp8_f32 v10, v1, v2 op_sel:[1,0,0]"
BENCHES = {
    arch: Bench(
        [case.line for of, case in _CASES if of == arch]
        + [_line(*shape, c) for shape in _SHAPES[arch] for c in ("", "0")],
        arch,
    )
    for arch in _ARCHS
}


def TESTED() -> set[str]:
    return set().union(*(bench.names() for bench in BENCHES.values()))


@pytest.mark.parametrize(("arch", "case"), _CASES, ids=lambda x: str(x))
def test_conversion(arch: str, case: VectorCase) -> None:
    check_vector(BENCHES[arch], case)


@pytest.mark.parametrize(("arch", "n", "k"), _MATRICES)
def test_matrix(arch: str, n: int, k: int) -> None:
    """Numbers of the format whose sums are exact in any order. Lane n of group g holds 1/G of the
    elements of row n, in order."""
    rng = random.Random(n)
    codes = [c for c in range(256) if (v := _value(c, arch)) is not None and abs(v) in (0, 1, 3, 6)]
    wave = make_wave()
    a, b = ([[rng.choice(codes) for _ in range(k)] for _ in range(n)] for _ in range(2))
    for first, rows in ((_A, a), (_B, b)):
        for row in range(n):
            for group in range(LANES // n):
                for register in range(_registers(n, k)):
                    start = 4 * (_registers(n, k) * group + register)
                    word = sum(rows[row][start + i] << 8 * i for i in range(4))
                    wave.v[first + register][:, row + n * group] = word
    for register in range(n * n // LANES):
        wave.v[_C + register][...] = _float_of(Fraction(register))
    for addend in ("", "0"):
        BENCHES[arch].run(_line(n, k, addend), wave)
        for row in range(n):
            for column in range(n):
                if n == 32:
                    lane, register = column + 32 * (row // 4 % 2), 4 * (row // 8) + row % 4
                else:
                    lane, register = column + 16 * (row // 4), row % 4
                total = Fraction(0 if addend else register)
                for i in range(k):
                    total += _value(a[row][i], arch) * _value(b[column][i], arch)
                for group in range(WORKGROUPS):
                    actual = int(wave.v[_D + register][group, lane])
                    assert exact.decode(actual, F32).value == total, (row, column, addend)


@pytest.mark.parametrize("arch", _ARCHS)
def test_matrix_of_nan(arch: str) -> None:
    wave = make_wave()
    for register in (*range(_A, _A + 2), *range(_B, _B + 2)):
        wave.v[register][...] = 0x38383838
    wave.v[_A][:, 0] = _NANS[arch][0]
    BENCHES[arch].run(_line(32, 16, "0"), wave)
    assert exact.decode(int(wave.v[_D][0, 0]), F32).is_nan  # row 0
    assert not exact.decode(int(wave.v[_D + 1][0, 0]), F32).is_nan  # row 1


def test_a_half_of_a_source_is_refused() -> None:
    with pytest.raises(UnsupportedInstruction, match="op_sel of a source"):
        Bench([_LOW_OF_A_SOURCE]).program()
