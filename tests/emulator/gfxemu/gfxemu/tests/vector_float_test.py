# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Floating-point vector ALU against exact fractions (exact.py)."""

from __future__ import annotations

import decimal
import functools
import math
from fractions import Fraction

import pytest

from gfxemu.tests import exact
from gfxemu.tests.bench import (
    MASKS,
    TOTAL,
    Bench,
    VectorCase,
    active,
    check_vector,
    get_mask,
    get_vector,
    make_wave,
    set_vector,
)
from gfxemu.tests.exact import (
    BF16,
    EDGE_F16,
    EDGE_F32,
    EDGE_F64,
    EDGE_U32,
    F16,
    F32,
    F64,
    M32,
    NAN,
    Real,
    signed,
)
from gfxemu.wave import VCC

decimal.getcontext().prec = 60


def _same(form: exact.Format):
    return lambda actual, expected: exact.same_float(actual, expected, form)


def _lift(function, flush: bool, form: exact.Format = F32):
    """A function of Reals as a function of encodings."""

    def lifted(*bits: int) -> int:
        reals = [exact.decode(b, form, flush) for b in bits]
        return exact.encode(function(*reals), form, flush=flush)

    return lifted


def _fma(a: Real, b: Real, c: Real) -> Real:
    return exact.add(exact.multiply(a, b), c)


def _reciprocal(a: Real) -> Real:
    if a.is_nan:
        return a
    if a.is_zero:
        return Real(a.negative, special="inf")
    return Real(a.negative, Fraction(0) if a.is_infinite else 1 / a.magnitude)


def _subtract(a: Real, b: Real) -> Real:
    return exact.add(a, exact.negate(b))


def _median(a: Real, b: Real, c: Real) -> Real:
    if a.is_nan or b.is_nan or c.is_nan:
        return exact.minimum(exact.minimum(a, b), c)
    return sorted((a, b, c), key=lambda x: (exact.ordinal(x), not x.negative))[1]


def _rounding(function):
    def f(a: Real) -> Real:
        if a.special or a.is_zero:
            return a
        return exact.from_fraction(Fraction(function(a.value)), a.negative)

    return f


def _fract(a: Real) -> Real:
    if a.special:
        return NAN
    part = a.value - math.floor(a.value)
    return exact.from_fraction(min(part, 1 - Fraction(2) ** -24))


def _mantissa(a: Real) -> Real:
    if a.special or a.is_zero:
        return a
    return exact.from_fraction(Fraction(math.frexp(a.value)[0]))


def _exponent(bits: int) -> int:
    a = exact.decode(bits, F32)
    return 0 if a.special or a.is_zero else math.frexp(a.value)[1] & M32


_UNARY = {
    "v_frexp_mant_f32": _mantissa,
    "v_floor_f32": _rounding(math.floor),
    "v_ceil_f32": _rounding(math.ceil),
    "v_trunc_f32": _rounding(math.trunc),
    "v_rndne_f32": _rounding(round),  # Python rounds halves to even
    "v_fract_f32": _fract,
}
_BINARY = {
    "v_add_f32": exact.add,
    "v_sub_f32": _subtract,
    "v_subrev_f32": lambda a, b: _subtract(b, a),
    "v_mul_f32": exact.multiply,
    "v_max_f32": exact.maximum,
    "v_min_f32": exact.minimum,
}
_TERNARY = {
    "v_fma_f32": _fma,
    "v_max3_f32": lambda a, b, c: exact.maximum(exact.maximum(a, b), c),
    "v_min3_f32": lambda a, b, c: exact.minimum(exact.minimum(a, b), c),
    "v_med3_f32": _median,
}
# Sums that need a single rounding: a product just beside the middle of two float32.
_FMA_A = [*EDGE_F32, 0x3F800800, 0x3F801000]
_FMA_B = [*EDGE_F32, 0x3F800800, 0x3F7FF000]
_FMA_C = [*EDGE_F32, 0x80000001, 0x2F800000, 0xAF800000, 0x4B800001]


def _sources(*pools):
    return tuple((1 + i, 32, pool) for i, pool in enumerate(pools))


def _float_case(line: str, function, *pools, flush: bool = False, **more) -> VectorCase:
    more.setdefault("agree", _same(F32))
    return VectorCase(line, _sources(*pools), _lift(function, flush), flush=flush, **more)


def _after(bits: int):
    """The sum of the second and a constant."""
    return lambda a, b: exact.add(exact.decode(bits, F32), b)


def _with_modifiers(function, flush: bool):
    """-|a|, b, result * 2, clamped to [0, 1] with NaN to 0."""

    def f(a: Real, b: Real) -> Real:
        r = function(Real(True, a.magnitude, a.special), b)
        r = exact.decode(exact.encode(r, F32, flush=flush), F32)
        r = exact.multiply(r, exact.from_fraction(Fraction(2)))
        if r.is_nan or r.negative:
            return Real(False)
        return Real(False, Fraction(1)) if r.is_infinite or r.magnitude > 1 else r

    return f


def _to_integer(low: int, high: int):
    def f(bits: int) -> int:
        a = exact.decode(bits, F32)
        if a.is_nan:
            return 0
        if a.is_infinite:
            return (low if a.negative else high) & M32
        return min(max(math.trunc(a.value), low), high) & M32

    return f


def _to_half(bits: int, truncate: bool = False) -> int:
    return exact.encode(exact.decode(bits, F32), F16, truncate=truncate)


def _from_integer(value: int) -> int:
    return exact.encode(exact.from_fraction(Fraction(value)), F32)


def _halves(form):
    def agree(actual: int, expected: int) -> bool:
        return exact.same_float(actual & 0xFFFF, expected & 0xFFFF, form) and exact.same_float(
            actual >> 16, expected >> 16, form
        )

    return agree


_HALF_WORDS = [h << 16 | g for h, g in zip(EDGE_F16, EDGE_F16[3:] + EDGE_F16[:3], strict=True)]


def _mix_sources(bits: tuple[int, ...], half: tuple[int, ...], is_half: tuple[int, ...]):
    for value, h, on in zip(bits, half, is_half, strict=True):
        if on:
            yield exact.decode(value >> 16 * h & 0xFFFF, F16)
        else:
            yield exact.decode(value, F32)


def _mix(half, is_half, kind: str):
    def f(a: int, b: int, c: int, old: int = 0) -> int:
        r = exact.encode(_fma(*_mix_sources((a, b, c), half, is_half)), F32)
        if kind == "f32":
            return r
        h = _to_half(r)
        return old & 0xFFFF_0000 | h if kind == "lo" else old & 0xFFFF | h << 16

    return f


def _mix_agree(kind: str):
    def agree(actual: int, expected: int) -> bool:
        if kind == "f32":
            return exact.same_float(actual, expected, F32)
        h, rest = (0, 16) if kind == "lo" else (16, 0)
        return exact.same_float(actual >> h & 0xFFFF, expected >> h & 0xFFFF, F16) and (
            actual >> rest & 0xFFFF == expected >> rest & 0xFFFF
        )

    return agree


def _mix_case(kind: str, half: tuple[int, ...], is_half: tuple[int, ...]) -> VectorCase:
    name = {"f32": "v_fma_mix_f32", "lo": "v_fma_mixlo_f16", "hi": "v_fma_mixhi_f16"}[kind]
    low, high = (",".join(map(str, bits)) for bits in (half, is_half))
    line = f"{name} v10, v1, v2, v3 op_sel:[{low}] op_sel_hi:[{high}]"
    pools = [_HALF_WORDS if on else EDGE_F32[::2] for on in is_half]
    return VectorCase(
        line, _sources(*pools), _mix(half, is_half, kind), agree=_mix_agree(kind), uses_old=True
    )


def _packed(function, low, high, negate_low=(0, 0, 0), negate_high=(0, 0, 0)):
    def f(*pairs: int) -> int:
        out = 0
        for part, (select, negate) in enumerate(((low, negate_low), (high, negate_high))):
            reals = []
            for i, pair in enumerate(pairs):
                r = exact.decode(pair >> 32 * select[i] & M32, F32)
                reals.append(exact.negate(r) if negate[i] else r)
            out |= exact.encode(function(*reals), F32) << 32 * part
        return out

    return f


def _packed_agree(actual: int, expected: int) -> bool:
    return all(exact.same_float(actual >> s & M32, expected >> s & M32, F32) for s in (0, 32))


_PAIRS = [a << 32 | b for a, b in zip(EDGE_F32, EDGE_F32[5:] + EDGE_F32[:5], strict=True)]


def _packed_case(line: str, function, count: int, *args) -> VectorCase:
    sources = tuple((2 + 2 * i, 64, _PAIRS) for i in range(count))
    return VectorCase(line, sources, _packed(function, *args), bits=64, agree=_packed_agree)


def _packed_half_case(
    line: str, function, low, high, neg_low=(0, 0), neg_high=(0, 0)
) -> VectorCase:
    def half(words, selected, negated) -> int:
        reals = []
        for word, upper, minus in zip(words, selected, negated, strict=True):
            real = exact.decode(word >> 16 * upper & 0xFFFF, F16)
            reals.append(exact.negate(real) if minus else real)
        return exact.encode(function(*reals), F16)

    return VectorCase(
        line,
        _sources(_HALF_WORDS, _HALF_WORDS[::-1]),
        lambda *x: half(x, low, neg_low) | half(x, high, neg_high) << 16,
        agree=_halves(F16),
    )


def _half_case(line: str, function) -> VectorCase:
    """Of the lower halves; the upper one of the result is 0."""

    def f(*words: int) -> int:
        return exact.encode(function(*(exact.decode(word & 0xFFFF, F16) for word in words)), F16)

    return VectorCase(line, _sources(_HALF_WORDS, _HALF_WORDS[::-1]), f, agree=_halves(F16))


def _double_case(line: str, function, count: int) -> VectorCase:
    sources = tuple((2 + 2 * i, 64, EDGE_F64) for i in range(count))
    return VectorCase(line, sources, _lift(function, False, F64), bits=64, agree=_same(F64))


_CASES = [
    *(
        _float_case(
            f"{n} v10, v1",
            f,
            [*EDGE_F32, 1075838976, 1056964608, 3204448256, 1080033280],
            flush=flush,
        )
        for n, f in _UNARY.items()
        for flush in (False,)
    ),
    *(
        _float_case(f"{n} v10, v1, v2", f, EDGE_F32, EDGE_F32, flush=flush)
        for n, f in _BINARY.items()
        for flush in (False, True)
        if not (flush and ("max" in n or "min" in n))
    ),
    *(_float_case(f"{n} v10, v1, v2, v3", f, _FMA_A, _FMA_B, _FMA_C) for n, f in _TERNARY.items()),
    *(
        _float_case(
            f"{n}_e64 v10, -|v1|, v2 clamp mul:2",
            _with_modifiers(_BINARY[n], False),
            EDGE_F32,
            EDGE_F32,
        )
        for n in ("v_add_f32", "v_mul_f32")
    ),
    _float_case(
        "v_add_f32 v10, 1.0, v2",
        lambda a, b: exact.add(exact.from_fraction(Fraction(1)), b),
        [0],
        EDGE_F32,
    ),
    *(
        _float_case(f"v_add_f32_e64 v10, {constant}, v2", _after(bits), [0], EDGE_F32)
        for constant, bits in {"neg(0)": 0x80000000, "neg(64)": 0x80000040}.items()
    ),
    VectorCase(
        "v_fmac_f32 v10, v1, v2",
        _sources(EDGE_F32, EDGE_F32),
        _lift(_fma, False),
        agree=_same(F32),
        uses_old=True,
    ),
    _float_case(
        "v_fmamk_f32 v10, v1, 0x3fc00000, v2",
        lambda a, b: _fma(a, exact.from_fraction(Fraction(3, 2)), b),
        EDGE_F32,
        EDGE_F32,
    ),
    _float_case(
        "v_fmaak_f32 v10, v1, v2, 0x3fc00000",
        lambda a, b: _fma(a, b, exact.from_fraction(Fraction(3, 2))),
        EDGE_F32,
        EDGE_F32,
    ),
    VectorCase(
        "v_ldexp_f32 v10, v1, v2",
        _sources(EDGE_F32, [0, 1, 24, 150, 0xFFFFFFFF, 0xFFFFFF6A, 300, 0x80000000]),
        lambda a, b: exact.encode(
            exact.multiply(
                exact.decode(a, F32),
                exact.from_fraction(Fraction(2) ** max(min(signed(b, 32), 400), -400)),
            ),
            F32,
        ),
        agree=_same(F32),
    ),
    # Conversions.
    VectorCase(
        "v_cvt_u32_f32 v10, v1", _sources([*EDGE_F32, 1333788671, 1333788672]), _to_integer(0, M32)
    ),
    VectorCase(
        "v_cvt_i32_f32 v10, v1",
        _sources([*EDGE_F32, 1325400063]),
        _to_integer(-(1 << 31), (1 << 31) - 1),
    ),
    VectorCase(
        "v_cvt_f16_f32 v10, v1",
        _sources([*EDGE_F32, 947916800, 947924992, 855638017]),
        _to_half,
        agree=_same(F16),
    ),
    VectorCase("v_frexp_exp_i32_f32 v10, v1", _sources(EDGE_F32), _exponent),
    VectorCase("v_cvt_f32_u32 v10, v1", _sources(EDGE_U32), _from_integer),
    VectorCase("v_cvt_f32_i32 v10, v1", _sources(EDGE_U32), lambda a: _from_integer(signed(a, 32))),
    *(
        VectorCase(
            f"v_cvt_f32_ubyte{i} v10, v1",
            _sources(EDGE_U32),
            lambda a, i=i: _from_integer(a >> 8 * i & 255),
        )
        for i in range(4)
    ),
    VectorCase(
        "v_cvt_f32_f16 v10, v1",
        _sources([h | 0xABCD0000 for h in EDGE_F16]),
        lambda a: exact.encode(exact.decode(a & 0xFFFF, F16), F32),
        agree=_same(F32),
    ),
    VectorCase(
        "v_cvt_f32_f16 v10, v1",
        _sources(EDGE_F16),
        flush=True,
        expected=lambda a: exact.encode(exact.decode(a, F16), F32),
        agree=_same(F32),
    ),
    VectorCase(
        "v_cvt_pkrtz_f16_f32 v10, v1, v2",
        _sources(EDGE_F32, EDGE_F32),
        lambda a, b: _to_half(a, True) | _to_half(b, True) << 16,
        agree=_halves(F16),
    ),
    *(
        _mix_case(kind, half, is_half)
        for kind in ("f32", "lo", "hi")
        for half, is_half in (
            ((0, 0, 0), (0, 0, 0)),
            ((1, 0, 0), (1, 0, 0)),
            ((0, 1, 1), (1, 1, 1)),
            ((0, 0, 1), (0, 0, 1)),
        )
    ),
    VectorCase(
        "v_fma_mix_f32 v10, -v1, |v2|, v3 op_sel_hi:[1,0,0]",
        _sources(_HALF_WORDS, EDGE_F32[::2], EDGE_F32[::3]),
        lambda a, b, c: exact.encode(
            _fma(
                exact.negate(exact.decode(a & 0xFFFF, F16)),
                exact.decode(b & 0x7FFF_FFFF, F32),
                exact.decode(c, F32),
            ),
            F32,
        ),
        agree=_same(F32),
    ),
    # Packed float32.
    _packed_case("v_pk_mul_f32 v[10:11], v[2:3], v[4:5]", exact.multiply, 2, (0, 0), (1, 1)),
    _packed_case(
        "v_pk_add_f32 v[10:11], v[2:3], v[4:5] op_sel:[1,0] op_sel_hi:[0,1]",
        exact.add,
        2,
        (1, 0),
        (0, 1),
    ),
    _packed_case(
        "v_pk_mul_f32 v[10:11], v[2:3], v[4:5] op_sel_hi:[0,1] neg_lo:[1,0] neg_hi:[0,1]",
        exact.multiply,
        2,
        (0, 0),
        (0, 1),
        (1, 0),
        (0, 1),
    ),
    _packed_case(
        "v_pk_fma_f32 v[10:11], v[2:3], v[4:5], v[6:7] neg_lo:[0,0,1] neg_hi:[0,0,1]",
        _fma,
        3,
        (0, 0, 0),
        (1, 1, 1),
        (0, 0, 1),
        (0, 0, 1),
    ),
    *(
        _half_case(f"{n}_f16 v10, v1, v2", f)
        for n, f in {"v_add": exact.add, "v_sub": _subtract, "v_mul": exact.multiply}.items()
    ),
    _half_case("v_add_f16_e64 v10, neg(0), v2", lambda _, b: exact.add(Real(True), b)),
    _packed_half_case("v_pk_add_f16 v10, v1, v2", exact.add, (0, 0), (1, 1)),
    _packed_half_case("v_pk_mul_f16 v10, v1, v2", exact.multiply, (0, 0), (1, 1)),
    _packed_half_case(
        "v_pk_add_f16 v10, v1, v2 op_sel:[1,0] op_sel_hi:[0,1] neg_lo:[0,1] neg_hi:[1,0]",
        exact.add,
        (1, 0),
        (0, 1),
        (0, 1),
        (1, 0),
    ),
    # float64.
    VectorCase(
        "v_cvt_f64_f32 v[10:11], v1",
        _sources(EDGE_F32),
        bits=64,
        agree=_same(F64),
        expected=lambda a: exact.encode(exact.decode(a, F32), F64),
    ),
    VectorCase(
        "v_cvt_f64_u32 v[10:11], v1",
        _sources(EDGE_U32),
        bits=64,
        expected=lambda a: exact.encode(exact.from_fraction(Fraction(a)), F64),
    ),
    VectorCase(
        "v_cvt_f64_i32 v[10:11], v1",
        _sources(EDGE_U32),
        bits=64,
        expected=lambda a: exact.encode(exact.from_fraction(Fraction(signed(a, 32))), F64),
    ),
    VectorCase(
        "v_cvt_f32_f64 v10, v[2:3]",
        ((2, 64, EDGE_F64),),
        lambda a: exact.encode(exact.decode(a, F64), F32),
        agree=_same(F32),
    ),
    VectorCase(
        "v_rcp_f64 v[10:11], v[2:3]",
        ((2, 64, EDGE_F64),),
        lambda a: exact.encode(_reciprocal(exact.decode(a, F64)), F64),
        bits=64,
        agree=_same(F64),
    ),
    _double_case("v_add_f64 v[10:11], v[2:3], v[4:5]", exact.add, 2),
    _double_case("v_mul_f64 v[10:11], v[2:3], v[4:5]", exact.multiply, 2),
    _double_case("v_fma_f64 v[10:11], v[2:3], v[4:5], v[6:7]", _fma, 3),
    VectorCase(
        "v_fmac_f64 v[10:11], v[2:3], v[4:5]",
        ((2, 64, EDGE_F64), (4, 64, EDGE_F64)),
        _lift(_fma, False, F64),
        bits=64,
        agree=_same(F64),
        uses_old=True,
    ),
]


def _with_nan(function):
    return lambda *x: NAN if any(v.is_nan for v in x) else functools.reduce(function, x)


_CASES_950 = [
    _float_case("v_maximum3_f32 v10, v1, v2, v3", _with_nan(exact.maximum), *[EDGE_F32] * 3),
    _float_case("v_minimum3_f32 v10, v1, v2, v3", _with_nan(exact.minimum), *[EDGE_F32] * 3),
    VectorCase(
        "v_cvt_pk_f16_f32 v10, v1, v2",
        _sources(EDGE_F32, EDGE_F32),
        lambda a, b: _to_half(a) | _to_half(b) << 16,
        agree=_halves(F16),
    ),
    VectorCase(
        "v_cvt_pk_bf16_f32 v10, v1, v2",
        _sources([*EDGE_F32, 1065385984, 1065451520, 2139095039, 2139095041], EDGE_F32),
        lambda a, b: (
            exact.encode(exact.decode(a, F32), BF16)
            | exact.encode(exact.decode(b, F32), BF16) << 16
        ),
        agree=_halves(BF16),
    ),
]


def _mad(a: Real, b: Real, c: Real) -> Real:
    """Rounded twice, without denormals."""
    product = exact.encode(exact.multiply(a, b), F32, flush=True)
    return exact.add(exact.decode(product, F32), c)


_CASES_90A = [
    _float_case("v_mad_f32 v10, v1, v2, v3", _mad, _FMA_A, _FMA_B, _FMA_C, flush=True),
    VectorCase(
        "v_mac_f32 v10, v1, v2",
        _sources(EDGE_F32, EDGE_F32),
        _lift(_mad, True),
        flush=True,
        agree=_same(F32),
        uses_old=True,
    ),
    _float_case(
        "v_madmk_f32 v10, v1, 0x3fc00000, v2",
        lambda a, b: _mad(a, exact.from_fraction(Fraction(3, 2)), b),
        EDGE_F32,
        EDGE_F32,
        flush=True,
    ),
    _float_case(
        "v_madak_f32 v10, v1, v2, 0x3fc00000",
        lambda a, b: _mad(a, b, exact.from_fraction(Fraction(3, 2))),
        EDGE_F32,
        EDGE_F32,
        flush=True,
    ),
]


# Transcendental: 60 decimal digits, then rounded; one unit in the last place is allowed.


def _decimal(x: Fraction) -> decimal.Decimal:
    return decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)


def _fraction(x: decimal.Decimal) -> Real:
    return exact.from_fraction(Fraction(x))


def _exp2(a: Real) -> Real:
    if a.special or a.is_zero:
        return (
            NAN
            if a.is_nan
            else Real(False, Fraction(1))
            if a.is_zero
            else Real(False)
            if a.negative
            else a
        )
    if abs(a.value) > 2000:
        return Real(False) if a.negative else Real(False, special="inf")
    if a.value.denominator == 1:
        return exact.from_fraction(Fraction(2) ** int(a.value))
    return _fraction(decimal.Decimal(2) ** _decimal(a.value))


def _log2(a: Real) -> Real:
    if a.is_zero:
        return Real(True, special="inf")
    if a.is_nan or a.negative:
        return NAN
    return a if a.is_infinite else _fraction(_decimal(a.value).ln() / decimal.Decimal(2).ln())


def _reciprocal(a: Real) -> Real:
    if a.is_nan:
        return NAN
    if a.is_infinite:
        return Real(a.negative)
    return Real(a.negative, special="inf") if a.is_zero else exact.from_fraction(1 / a.value)


def _sqrt(a: Real) -> Real:
    if a.is_zero or (a.is_infinite and not a.negative):
        return a
    return NAN if a.is_nan or a.negative else _fraction(_decimal(a.value).sqrt())


def _rsq(a: Real) -> Real:
    return _reciprocal(_sqrt(a))


@functools.cache
def _pi() -> decimal.Decimal:
    """Machin's formula."""

    def arctan_inverse(n: int) -> decimal.Decimal:
        total, term, k = decimal.Decimal(0), decimal.Decimal(1) / n, 1
        while abs(term) > decimal.Decimal(10) ** -58:
            total += term / k if k % 4 == 1 else -term / k
            term /= n * n
            k += 2
        return total

    return 4 * (4 * arctan_inverse(5) - arctan_inverse(239))


def _trigonometric(offset: Fraction):
    """sin(2 pi (a + offset)) by its Taylor series."""

    def f(a: Real) -> Real:
        if a.special:
            return NAN
        turns = (a.value + offset) % 1
        x = 2 * _pi() * _decimal(turns)
        total, term, k = decimal.Decimal(0), x, 1
        while abs(term) > decimal.Decimal(10) ** -50:
            total += term
            term *= -x * x / ((k + 1) * (k + 2))
            k += 2
        return _fraction(total)

    return f


_TRANSCENDENTAL = {
    "v_exp_f32": _exp2,
    "v_log_f32": _log2,
    "v_rcp_f32": _reciprocal,
    "v_rcp_iflag_f32": _reciprocal,
    "v_rsq_f32": _rsq,
    "v_sqrt_f32": _sqrt,
}
_TRIGONOMETRIC = {"v_sin_f32": Fraction(0), "v_cos_f32": Fraction(1, 4)}
_DIVIDE = {
    F32: [
        "v_div_scale_f32 v10, vcc, v1, v2, v3",
        "v_div_fmas_f32 v10, v1, v2, v3",
        "v_div_fixup_f32 v10, v1, v2, v3",
    ],
    F64: [
        "v_div_scale_f64 v[10:11], vcc, v[2:3], v[4:5], v[6:7]",
        "v_div_fmas_f64 v[10:11], v[2:3], v[4:5], v[6:7]",
        "v_div_fixup_f64 v[10:11], v[2:3], v[4:5], v[6:7]",
    ],
}
# The compiler's divisions: S1 / S2 -> D, of the registers of _DIVIDE.
_DIVISION = {
    F32: [
        "v_div_scale_f32 v20, s[40:41], v2, v2, v1",
        "v_div_scale_f32 v21, vcc, v1, v2, v1",
        "v_rcp_f32 v22, v20",
        "v_fma_f32 v23, -v20, v22, 1.0",
        "v_fmac_f32 v22, v23, v22",
        "v_mul_f32 v23, v21, v22",
        "v_fma_f32 v24, -v20, v23, v21",
        "v_fmac_f32 v23, v24, v22",
        "v_fma_f32 v20, -v20, v23, v21",
        "v_div_fmas_f32 v20, v20, v22, v23",
        "v_div_fixup_f32 v10, v20, v2, v1",
    ],
    F64: [
        "v_div_scale_f64 v[20:21], s[40:41], v[4:5], v[4:5], v[2:3]",
        "v_rcp_f64 v[22:23], v[20:21]",
        "v_fma_f64 v[24:25], -v[20:21], v[22:23], 1.0",
        "v_fmac_f64 v[22:23], v[22:23], v[24:25]",
        "v_div_scale_f64 v[24:25], vcc, v[2:3], v[4:5], v[2:3]",
        "v_mul_f64 v[26:27], v[24:25], v[22:23]",
        "v_fma_f64 v[20:21], -v[20:21], v[26:27], v[24:25]",
        "v_div_fmas_f64 v[20:21], v[20:21], v[22:23], v[26:27]",
        "v_div_fixup_f64 v[10:11], v[20:21], v[4:5], v[2:3]",
    ],
}
_DIVIDED = {F32: EDGE_F32, F64: EDGE_F64}


def _register(form: exact.Format, position: int) -> int:
    """The register of S0, S1 or S2 in _DIVIDE."""
    return 1 + position if form is F32 else 2 + 2 * position


BENCH = Bench(
    [
        *(c.line for c in _CASES),
        *(f"{n} v10, v1" for n in [*_TRANSCENDENTAL, *_TRIGONOMETRIC]),
        *(line for lines in (*_DIVIDE.values(), *_DIVISION.values()) for line in lines),
    ]
)
BENCH_90A = Bench([c.line for c in _CASES_90A], "gfx90a")
BENCH_950 = Bench([c.line for c in _CASES_950], "gfx950")


def TESTED() -> set[str]:
    return BENCH.names() | BENCH_90A.names() | BENCH_950.names()


@pytest.mark.parametrize("case", _CASES, ids=str)
def test_operation(case: VectorCase) -> None:
    check_vector(BENCH, case)


@pytest.mark.parametrize("case", _CASES_90A, ids=str)
def test_operation_gfx90a(case: VectorCase) -> None:
    check_vector(BENCH_90A, case)


@pytest.mark.parametrize("case", _CASES_950, ids=str)
def test_operation_gfx950(case: VectorCase) -> None:
    check_vector(BENCH_950, case)


@pytest.mark.parametrize("name", _TRANSCENDENTAL)
def test_transcendental(name: str) -> None:
    def expected(a: int) -> int:
        return exact.encode(_TRANSCENDENTAL[name](exact.decode(a, F32, True)), F32, flush=True)

    inputs = [*EDGE_F32, 3271294976, 3271242547, 3272998912, 1123942400, 1124073472, 1051372203]
    case = VectorCase(
        f"{name} v10, v1",
        _sources(inputs),
        expected,
        agree=lambda x, y: exact.within_ulps(x, y, F32, 1),
    )
    check_vector(BENCH, case)


@pytest.mark.parametrize("name", _TRIGONOMETRIC)
def test_trigonometric(name: str) -> None:
    """The error is absolute: 2**-22, near zeros of the function."""
    function = _trigonometric(_TRIGONOMETRIC[name])

    def expected(a: int) -> int:
        return exact.encode(function(exact.decode(a, F32, True)), F32, flush=True)

    def agree(actual: int, wanted: int) -> bool:
        x, y = exact.decode(actual, F32), exact.decode(wanted, F32)
        if y.is_nan:
            return x.is_nan
        return abs(x.value - y.value) <= Fraction(2) ** -22

    small = [x for x in EDGE_F32 if (x >> 23 & 255) < 127 + 8 or (x >> 23 & 255) == 255]
    check_vector(BENCH, VectorCase(f"{name} v10, v1", _sources(small), expected, agree=agree))


@pytest.mark.parametrize("form", _DIVISION, ids=lambda f: f"f{f.width}")
def test_division(form: exact.Format) -> None:
    """The whole sequence gives the correctly rounded quotient, denormals kept as CK sets MODE."""
    numbers = [x for x in _DIVIDED[form] if not exact.decode(x, form).is_nan]
    pairs = [(a, b) for a in numbers for b in numbers]
    one, three = (exact.encode(exact.from_fraction(Fraction(n)), form) for n in (1, 3))
    while len(pairs) % TOTAL:
        pairs.append((one, three))
    for first in range(0, len(pairs), TOTAL):
        chunk = pairs[first : first + TOTAL]
        wave = make_wave()
        for position in (0, 1):
            values = [pair[position] for pair in chunk]
            set_vector(wave, _register(form, position), values, form.width)
        for line in _DIVISION[form]:
            BENCH.run(line, wave)
        for (a, b), actual in zip(chunk, get_vector(wave, 10, form.width), strict=True):
            x, y = exact.decode(a, form), exact.decode(b, form)
            negative = x.negative != y.negative
            if (x.is_zero and y.is_zero) or (x.is_infinite and y.is_infinite):
                wanted = form.nan
            elif x.is_infinite or y.is_zero:
                wanted = exact.encode(Real(negative, special="inf"), form)
            elif y.is_infinite or x.is_zero:
                wanted = exact.encode(Real(negative), form)
            else:
                wanted = exact.encode(Real(negative, x.magnitude / y.magnitude), form)
            assert exact.within_ulps(actual, wanted, form, 1), (
                hex(a),
                hex(b),
                hex(actual),
                hex(wanted),
            )


def _bits(form: exact.Format, exponent: int) -> int:
    """2**exponent, denormal too."""
    return exact.encode(exact.from_fraction(Fraction(2) ** exponent), form)


@pytest.mark.parametrize("form", _DIVIDE, ids=lambda f: f"f{f.width}")
@pytest.mark.parametrize("exec_mask", MASKS)
def test_division_scale_and_flags(form: exact.Format, exec_mask: int) -> None:
    """Each rule of v_div_scale: (S0, S1 denominator, S2 numerator) -> (result, flag)."""
    scale, large, small = (64, 96, 23) if form is F32 else (128, 768, 53)
    one, top, lowest = 0, form.bias, 1 - form.bias  # exponents; 2**-top is denormal
    denormal = lowest - 3
    rules = [
        ((one, one, one), (one, 0)),
        ((one, one, large), (one + scale, 1)),  # a large quotient, S0 the denominator
        ((large, one, large), (large, 1)),  # the same, S0 the numerator
        ((denormal, denormal, lowest + 3), (denormal + scale, 0)),  # denormal denominator
        ((top, top, top), (top - scale, 0)),  # 1 / denominator is denormal
        ((top, top, one), (top - scale, 1)),  # and so is the quotient
        ((one, top, one), (one, 1)),
        ((lowest + 62, 65, lowest + 62), (lowest + 62 + scale, 1)),  # the quotient is denormal
        ((65, 65, lowest + 62), (65, 1)),
        # The numerator's biased exponent is small.
        ((small - form.bias, one, small - form.bias), (small - form.bias + scale, 0)),
        ((small + 1 - form.bias, one, small + 1 - form.bias), (small + 1 - form.bias, 0)),
    ]
    wave = make_wave(exec_mask)
    for position in range(3):
        values = [_bits(form, rules[i % len(rules)][0][position]) for i in range(TOTAL)]
        set_vector(wave, _register(form, position), values, form.width)
    set_vector(wave, 10, [5] * TOTAL, form.width)
    BENCH.run(_DIVIDE[form][0], wave)
    values, flags = get_vector(wave, 10, form.width), get_mask(wave, VCC)
    for lane, on in enumerate(active(exec_mask)):
        result, flag = rules[lane % len(rules)][1]
        assert (values[lane], flags[lane]) == ((_bits(form, result), flag) if on else (5, 0)), lane


@pytest.mark.parametrize("form", _DIVIDE, ids=lambda f: f"f{f.width}")
def test_division_scale_of_zero(form: exact.Format) -> None:
    for position in (1, 2):
        wave = make_wave()
        for at in range(3):
            value = 0 if at == position else _bits(form, 0)
            set_vector(wave, _register(form, at), [value] * TOTAL, form.width)
        BENCH.run(_DIVIDE[form][0], wave)
        assert exact.decode(get_vector(wave, 10, form.width)[0], form).is_nan
        assert not any(get_mask(wave, VCC))


@pytest.mark.parametrize("form", _DIVIDE, ids=lambda f: f"f{f.width}")
def test_division_fmas_scales_back(form: exact.Format) -> None:
    scale = 64 if form is F32 else 128
    wave = make_wave()
    set_vector(wave, _register(form, 0), [_bits(form, 0)] * TOTAL, form.width)
    set_vector(wave, _register(form, 1), [_bits(form, 1)] * TOTAL, form.width)
    addends = [_bits(form, 2 if i % 2 else -63) for i in range(TOTAL)]
    set_vector(wave, _register(form, 2), addends, form.width)
    wave.write64(VCC, 0x3)
    BENCH.run(_DIVIDE[form][1], wave)
    values = [exact.decode(v, form).value for v in get_vector(wave, 10, form.width)[:4]]
    # 2 + 2**-63, which is 2 in either format, and 2 + 4.
    assert values[2:] == [2, 6]
    assert values[:2] == [Fraction(2) ** (1 - scale), 6 * Fraction(2) ** scale]


@pytest.mark.parametrize("form", _DIVIDE, ids=lambda f: f"f{f.width}")
def test_division_fixup(form: exact.Format) -> None:
    nan, inf, minus = form.nan, form.infinity, form.sign
    one, two, least = _bits(form, 0), _bits(form, 1), _bits(form, 1 - form.bias)
    rules = [
        ((two, one, two), two),
        ((two, one | minus, two), two | minus),  # the sign comes from the operands
        ((two, nan, one), nan),
        ((two, one, nan), nan),
        ((nan, 0, 0), nan),
        ((nan, inf, inf), nan),
        ((nan, 0, one), inf),
        ((nan, minus, one), inf | minus),
        ((nan, inf, one), 0),
        ((nan, inf, one | minus), minus),
        ((nan, one, 0), 0),
        ((nan, one, inf), inf),
        ((two, _bits(form, form.bias), least), 0),  # far too small a quotient
    ]
    wave = make_wave()
    for position in range(3):
        values = [rules[i % len(rules)][0][position] for i in range(TOTAL)]
        set_vector(wave, _register(form, position), values, form.width)
    BENCH.run(_DIVIDE[form][2], wave)
    for lane, actual in enumerate(get_vector(wave, 10, form.width)):
        assert exact.same_float(actual, rules[lane % len(rules)][1], form), lane
