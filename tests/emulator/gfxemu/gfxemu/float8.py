# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""An arch's 8-bit floating point with 4 bits of exponent and 3 of fraction.

gfx942 has E4M3 FNUZ (CDNA3 ISA): bias 8, no infinity, no negative zero, whose encoding is the only
NaN; the largest number is 240. gfx950 has the OCP's E4M3 (OCP 8-bit Floating Point Specification):
bias 7, no infinity, NaN where all bits but the sign are set; the largest number is 448. Both round
to nearest even and keep denormals, and what rounds beyond the largest number becomes NaN: kernels
that clamp do so themselves, as MODE.FP16_OVFL is clear.
"""

from __future__ import annotations

import dataclasses

import numpy as np

Array = np.ndarray
_FRACTION_BITS = 3


@dataclasses.dataclass(frozen=True)
class E4M3:
    """`numbers` are the float64 of all encodings."""

    bias: int
    largest: float
    nan: int  # beside the sign, where it has one
    negative_zero: bool
    numbers: Array = dataclasses.field(repr=False, compare=False)

    def encode(self, x: Array) -> Array:
        """float32 -> encodings, uint32."""
        wide = x.astype(np.float64)
        magnitude = np.abs(wide)
        finite = np.where(np.isfinite(magnitude), magnitude, 0.0)
        # Numbers below the smallest normal one have its last place; frexp says 0 of zero.
        exponent = np.maximum(np.frexp(finite)[1] - 1, 1 - self.bias)
        exponent = np.where(finite == 0, 1 - self.bias, exponent)
        places = np.rint(np.ldexp(finite, _FRACTION_BITS - exponent)).astype(np.int64)
        # A significand that was rounded up to the next power of two carries into the exponent.
        code = (exponent + self.bias - 1 << _FRACTION_BITS) + places
        rounded = np.ldexp(places.astype(np.float64), exponent - _FRACTION_BITS)
        sign = np.where(np.signbit(wide), 0x80, 0)
        if self.negative_zero:
            signed, nan = code | sign, self.nan | sign
        else:
            signed, nan = np.where(code == 0, 0, code | sign), self.nan
        is_number = np.isfinite(magnitude) & (rounded <= self.largest)
        return np.where(is_number, signed, nan).astype(np.uint32)

    def decode(self, encodings: Array) -> Array:
        """The float64 of encodings, of any integer type."""
        return self.numbers[encodings]


def _numbers(bias: int, nans: tuple[int, ...]) -> Array:
    encodings = np.arange(256)
    exponent, fraction = encodings >> _FRACTION_BITS & 15, encodings & 7
    significand = np.where(exponent == 0, fraction, fraction + 8)
    value = np.ldexp(significand.astype(np.float64), np.maximum(exponent, 1) - bias - 3)
    value = np.where(encodings & 0x80, -value, value)
    value[list(nans)] = np.nan
    return value


FNUZ = E4M3(8, 240.0, 0x80, False, _numbers(8, (0x80,)))
OCP = E4M3(7, 448.0, 0x7F, True, _numbers(7, (0x7F, 0xFF)))


def of_arch(arch: str) -> E4M3:
    """gfx90a has no instruction of either."""
    return FNUZ if arch == "gfx942" else OCP
