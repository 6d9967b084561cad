# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Floating point worked out with Python integers and fractions, for the opcode tests.

Independent of numpy on purpose: a value is a sign and a Fraction, or an infinity, or a NaN, and
rounding is done here, digit by digit.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction


@dataclasses.dataclass(frozen=True)
class Format:
    exponent_bits: int
    fraction_bits: int

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def width(self) -> int:
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.fraction_bits

    @property
    def sign(self) -> int:
        return 1 << (self.width - 1)

    @property
    def nan(self) -> int:
        return self.infinity | 1 << (self.fraction_bits - 1)

    @property
    def smallest_normal(self) -> Fraction:
        return Fraction(2) ** (1 - self.bias)


F16, BF16, F32, F64 = Format(5, 10), Format(8, 7), Format(8, 23), Format(11, 52)


@dataclasses.dataclass(frozen=True)
class Real:
    """A number, infinity ("inf") or NaN ("nan") with its sign."""

    negative: bool
    magnitude: Fraction = Fraction(0)
    special: str = ""

    @property
    def value(self) -> Fraction:
        return -self.magnitude if self.negative else self.magnitude

    @property
    def is_nan(self) -> bool:
        return self.special == "nan"

    @property
    def is_infinite(self) -> bool:
        return self.special == "inf"

    @property
    def is_zero(self) -> bool:
        return not self.special and not self.magnitude


NAN = Real(False, special="nan")


def decode(bits: int, form: Format, flush: bool = False) -> Real:
    """`flush` reads denormals as zeros."""
    negative = bool(bits & form.sign)
    exponent = bits >> form.fraction_bits & ((1 << form.exponent_bits) - 1)
    fraction = bits & ((1 << form.fraction_bits) - 1)
    if exponent == (1 << form.exponent_bits) - 1:
        return Real(negative, special="nan" if fraction else "inf")
    if exponent == 0:
        if flush:
            fraction = 0
        return Real(
            negative, Fraction(fraction) * Fraction(2) ** (1 - form.bias - form.fraction_bits)
        )
    significand = (1 << form.fraction_bits) + fraction
    return Real(negative, significand * Fraction(2) ** (exponent - form.bias - form.fraction_bits))


def floor_log2(x: Fraction) -> int:
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    while Fraction(2) ** guess > x:
        guess -= 1
    while Fraction(2) ** (guess + 1) <= x:
        guess += 1
    return guess


def encode(x: Real, form: Format, *, truncate: bool = False, flush: bool = False) -> int:
    """Round to nearest even, or toward zero; `flush` turns denormal results into zeros.

    A result is denormal by its value before rounding.
    """
    sign = form.sign if x.negative else 0
    if x.is_nan:
        return form.nan
    if x.is_infinite:
        return sign | form.infinity
    if x.is_zero:
        return sign
    if flush and x.magnitude < form.smallest_normal:
        return sign
    smallest = 1 - form.bias
    exponent = max(floor_log2(x.magnitude), smallest)
    scaled = x.magnitude / Fraction(2) ** (exponent - form.fraction_bits)
    whole = math.floor(scaled)
    rest = scaled - whole
    if not truncate and (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1)):
        whole += 1
    if whole >= 1 << (form.fraction_bits + 1):
        whole >>= 1
        exponent += 1
    if whole < 1 << form.fraction_bits:
        return sign | whole  # denormal
    biased = exponent + form.bias
    if biased >= (1 << form.exponent_bits) - 1:
        return sign | (form.infinity - 1 if truncate else form.infinity)
    return sign | biased << form.fraction_bits | (whole - (1 << form.fraction_bits))


def from_fraction(value: Fraction, negative_zero: bool = False) -> Real:
    return Real(value < 0 or (not value and negative_zero), abs(value))


def add(a: Real, b: Real) -> Real:
    if a.is_nan or b.is_nan or (a.is_infinite and b.is_infinite and a.negative != b.negative):
        return NAN
    if a.is_infinite or b.is_infinite:
        return a if a.is_infinite else b
    return from_fraction(a.value + b.value, a.negative and b.negative)


def negate(a: Real) -> Real:
    return dataclasses.replace(a, negative=not a.negative)


def multiply(a: Real, b: Real) -> Real:
    negative = a.negative != b.negative
    if a.is_nan or b.is_nan:
        return NAN
    if a.is_infinite or b.is_infinite:
        return NAN if a.is_zero or b.is_zero else Real(negative, special="inf")
    return Real(negative, a.magnitude * b.magnitude)


def compare(a: Real, b: Real) -> int | None:
    """-1, 0, 1, or None with a NaN."""
    if a.is_nan or b.is_nan:
        return None
    x, y = ordinal(a), ordinal(b)
    return (x > y) - (x < y)


def ordinal(a: Real) -> Fraction:
    huge = Fraction(2) ** 5000
    return (-huge if a.negative else huge) if a.is_infinite else a.value


def maximum(a: Real, b: Real) -> Real:
    """A NaN loses; +0 is above -0."""
    if a.is_nan or b.is_nan:
        return b if a.is_nan else a
    if ordinal(a) == ordinal(b):
        return b if a.negative else a
    return a if ordinal(a) > ordinal(b) else b


def minimum(a: Real, b: Real) -> Real:
    if a.is_nan or b.is_nan:
        return b if a.is_nan else a
    return negate(maximum(negate(a), negate(b)))


def same_float(actual: int, expected: int, form: Format) -> bool:
    """Equal bits, or both NaN."""
    if decode(expected, form).is_nan:
        return decode(actual, form).is_nan
    return actual == expected


def within_ulps(actual: int, expected: int, form: Format, ulps: int) -> bool:
    """Both are encodings; neighbours differ by one."""
    if decode(expected, form).is_nan or decode(actual, form).is_nan:
        return decode(expected, form).is_nan and decode(actual, form).is_nan

    def line(bits: int) -> int:
        return form.sign - bits if bits & form.sign else bits

    return abs(line(actual) - line(expected)) <= ulps


def binary(
    function: Callable[[Real, Real], Real], form: Format, flush: bool
) -> Callable[[int, int], int]:
    """Lift a function of reals to encodings."""

    def lifted(a: int, b: int) -> int:
        return encode(function(decode(a, form, flush), decode(b, form, flush)), form, flush=flush)

    return lifted


# Bit patterns that find mistakes.
EDGE_F32 = [
    0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x40490FDB, 0xC2F6E979,
    0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF, 0xFF7FFFFF, 0x00800000, 0x80800000,
    0x00000001, 0x807FFFFF, 0x00400000, 0x3F800001, 0x33800000, 0x4B800000, 0x4B7FFFFF,
    0x3F7FFFFF, 0x4F000000, 0xCF000000, 0x477FE000, 0x477FF000, 0x477FEFFF, 0x33000000,
    0x387FC000, 0x38800000, 0x3DCCCCCD, 0x7E967699, 0x0DA24260,
]  # fmt: skip
EDGE_F16 = [
    0x0000, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 0x7BFF, 0xFBFF, 0x0400, 0x0001,
    0x83FF, 0x3C01, 0x3555, 0xC248, 0x0200,
]  # fmt: skip
EDGE_F64 = [
    0x0000000000000000, 0x8000000000000000, 0x3FF0000000000000, 0xBFF0000000000000,
    0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0x7FEFFFFFFFFFFFFF,
    0x3FF0000000000001, 0x400921FB54442D18, 0xC05EDD2F1A9FBE77, 0x3E70000000000000,
    0x47EFFFFFE0000000, 0x47EFFFFFF0000000, 0x36A0000000000000, 0x3810000000000000,
]  # fmt: skip
EDGE_U32 = [
    0, 1, 2, 0x1F, 0x20, 0x21, 0x3F, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000,
    0x7FFFFF, 0x800000, 0xFFFFFF, 0x1000000, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE,
    0xFFFFFFFF, 0x12345678, 0xDEADBEEF, 0xAAAAAAAA, 0x55555555, 5, 0x00FF00FF, 0xF0000000,
    31 << 16 | 4,
]  # fmt: skip
EDGE_U64 = [
    0, 1, 0xFFFFFFFF, 0x100000000, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF,
    0x123456789ABCDEF0, 0xDEADBEEFCAFEF00D, 0x00000000FFFF0000, 0x8000000080000000, 63,
]  # fmt: skip


def signed(x: int, bits: int) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


M32, M64 = (1 << 32) - 1, (1 << 64) - 1
