# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Vector ALU: floating point (CDNA3 ISA, VOP1-VOP3P).

Arithmetic is IEEE with rounding to nearest even. Transcendental instructions, which the hardware
approximates to about 1 ulp, are computed in double precision and rounded; they never see or give
denormals. float32 denormals elsewhere follow MODE (float_environment.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from gfxemu import float8
from gfxemu.decoder import Decoding, Execute, opcodes
from gfxemu.errors import UnsupportedInstruction
from gfxemu.operands import Operand, float16, float32, float64, vector32
from gfxemu.vector_integer import packed_half
from gfxemu.wave import VCC, Wave

Array = np.ndarray
Read = Callable[[Wave], Array]
_U32, _U64, _F32, _F64 = np.uint32, np.uint64, np.float32, np.float64
_LOW16 = _U32(0xFFFF)
_SIGN = _U32(0x8000_0000)
_SMALLEST_NORMAL = _F32(2.0**-126)


# Exact fused multiply-add.


def fma32(a: Array, b: Array, c: Array) -> Array:
    """a * b + c rounded once to float32.

    The product of two float32 is exact in float64. The sum is not; rounding it to odd (von
    Neumann rounding: an inexact result gets its last bit set) keeps what the second rounding, to
    float32, needs to know.
    """
    return round_to_odd_sum(a.astype(_F64) * b.astype(_F64), c.astype(_F64)).astype(_F32)


def round_to_odd_sum(p: Array, c: Array) -> Array:
    s, error = _two_sum(p, c)
    inexact = (error != 0) & np.isfinite(s)
    if not inexact.any():
        return s
    bits = np.asarray(s).view(np.int64)
    away = np.signbit(error) == np.signbit(s)
    odd = np.where(away, bits + 1, bits - 1)
    return np.where(inexact & ((bits & 1) == 0), odd, bits).view(_F64)


def fma64(a: Array, b: Array, c: Array) -> Array:
    """a * b + c in float64, rounded once (Boldo and Melquiond's emulation by rounding to odd)."""
    high = a * b
    high_a, low_a = _split(a)
    high_b, low_b = _split(b)
    low = low_a * low_b - (((high - high_a * high_b) - low_a * high_b) - high_a * low_b)
    sum_high, sum_low = _two_sum(c, low)
    top, rest = _two_sum(high, sum_high)
    exact = top + round_to_odd_sum(sum_low, rest)
    plain = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, high + c)
    return np.where(np.isfinite(exact) & (exact != 0), exact, plain)


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Knuth's two-sum: the rounded sum and its exact error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _split(x: Array) -> tuple[Array, Array]:
    """Veltkamp's splitting of a double into two halves of 26 bits."""
    t = x * _F64(134217729.0)
    high = t - (t - x)
    return high, x - high


# Pure functions of float32 arrays.


def maximum(a: Array, b: Array) -> Array:
    """A NaN loses against a number; +0 is above -0."""
    r = np.fmax(a, b)
    zero = r == 0
    if zero.any():
        both_negative = np.signbit(a) & np.signbit(b) & (a == b)
        return np.where(zero & (a == b), np.where(both_negative, _F32(-0.0), _F32(0.0)), r)
    return r


def minimum(a: Array, b: Array) -> Array:
    r = np.fmin(a, b)
    zero = r == 0
    if zero.any():
        one_negative = np.signbit(a) | np.signbit(b)
        return np.where(zero & (a == b), np.where(one_negative, _F32(-0.0), _F32(0.0)), r)
    return r


def _with_nan(function: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    """Of three; a NaN wins (IEEE 754-2019's maximum and minimum; gfx950)."""

    def of_three(a: Array, b: Array, c: Array) -> Array:
        nan = np.isnan(a) | np.isnan(b) | np.isnan(c)
        return np.where(nan, _F32(np.nan), function(function(a, b), c))

    return of_three


def _median(a: Array, b: Array, c: Array) -> Array:
    """v_med3_f32: with a NaN input the minimum of the others."""
    low = minimum(minimum(a, b), c)
    middle = maximum(minimum(maximum(a, b), c), minimum(a, b))
    return np.where(np.isnan(a) | np.isnan(b) | np.isnan(c), low, middle)


def flush(x: Array) -> Array:
    """Replace denormals by zero of the same sign."""
    return np.where(np.abs(x) < _SMALLEST_NORMAL, np.copysign(_F32(0), x), x)


def _mad(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded twice, without denormals in any MODE (gfx90a has it, not later)."""
    return flush(flush(flush(a) * flush(b)) + flush(c))


def _transcendental(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda a: flush(function(flush(a).astype(_F64)).astype(_F32))


def _turns(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """v_sin and v_cos take revolutions; infinities give NaN."""
    return lambda a: function((a - np.floor(a)) * (2 * np.pi))


def _ldexp(a: Array, exponent: Array) -> Array:
    return np.ldexp(a.astype(_F64), np.clip(exponent, -300, 300)).astype(_F32)


def _mantissa(a: Array) -> Array:
    """In [0.5, 1); infinities and NaN as they are."""
    return np.where(np.isfinite(a), np.frexp(a)[0], a)


def _exponent(a: Array) -> Array:
    return np.where(np.isfinite(a), np.frexp(a)[1], 0).astype(np.int32).view(_U32)


UNARY: dict[str, Callable[[Array], Array]] = {
    "v_frexp_mant_f32": _mantissa,
    "v_exp_f32": _transcendental(np.exp2),
    "v_log_f32": _transcendental(np.log2),
    "v_rcp_f32": _transcendental(lambda a: 1.0 / a),
    "v_rcp_iflag_f32": _transcendental(lambda a: 1.0 / a),
    "v_rsq_f32": _transcendental(lambda a: 1.0 / np.sqrt(a)),
    "v_sqrt_f32": _transcendental(np.sqrt),
    "v_sin_f32": _transcendental(_turns(np.sin)),
    "v_cos_f32": _transcendental(_turns(np.cos)),
    "v_floor_f32": np.floor,
    "v_ceil_f32": np.ceil,
    "v_trunc_f32": np.trunc,
    "v_rndne_f32": np.rint,
    "v_fract_f32": lambda a: np.minimum(a - np.floor(a), _F32(1 - 2.0**-24)),
}

BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "v_add_f32": lambda a, b: a + b,
    "v_sub_f32": lambda a, b: a - b,
    "v_subrev_f32": lambda a, b: b - a,
    "v_mul_f32": lambda a, b: a * b,
    "v_max_f32": maximum,
    "v_min_f32": minimum,
}

# Those of BINARY that are one function of numpy's, which may write to the destination.
_DIRECT: dict[str, np.ufunc] = {
    "v_add_f32": np.add,
    "v_sub_f32": np.subtract,
    "v_mul_f32": np.multiply,
}

TERNARY: dict[str, Callable[[Array, Array, Array], Array]] = {
    "v_fma_f32": fma32,
    "v_mad_f32": _mad,
    "v_max3_f32": lambda a, b, c: maximum(maximum(a, b), c),
    "v_min3_f32": lambda a, b, c: minimum(minimum(a, b), c),
    "v_med3_f32": _median,
    "v_maximum3_f32": _with_nan(maximum),
    "v_minimum3_f32": _with_nan(minimum),
}

_OUTPUT_SCALE = {"mul:2": _F32(2), "mul:4": _F32(4), "div:2": _F32(0.5)}


def _output_modifiers(d: Decoding) -> Callable[[Array], Array] | None:
    """omod and clamp (clamping a NaN gives 0: DX10_CLAMP is set in every kernel)."""
    scale = None
    for name in ("mul", "div"):
        value = d.instruction.text_modifier(name)
        if value:
            scale = _OUTPUT_SCALE[f"{name}:{value}"]
    clamp = d.instruction.flag("clamp")
    if scale is None and not clamp:
        return None

    def modify(x: Array) -> Array:
        if scale is not None:
            x = x * scale
        return np.fmin(np.fmax(x, _F32(0)), _F32(1)) + _F32(0) if clamp else x

    return modify


@opcodes(*UNARY)
def _unary(d: Decoding) -> Execute:
    function, to, a = UNARY[d.name], d.destination(), float32(d.operands[1])
    modify = _output_modifiers(d)
    if modify is None:
        return lambda w: w.write_float(to, function(a(w)))
    return lambda w: w.write_float(to, modify(function(a(w))))


@opcodes(*BINARY)
def _binary(d: Decoding) -> Execute:
    function, to = BINARY[d.name], d.destination()
    a, b = float32(d.operands[1]), float32(d.operands[2])
    modify = _output_modifiers(d)
    if modify is not None:
        return lambda w: w.write_float(to, modify(function(a(w), b(w))))

    direct = _DIRECT.get(d.name)

    def execute(w: Wave) -> None:
        if not w.all_lanes:
            np.copyto(w.f[to], function(a(w), b(w)), where=w.lanes)
        elif direct is not None:
            direct(a(w), b(w), out=w.f[to])
        else:
            w.f[to][...] = function(a(w), b(w))

    return execute


@opcodes(*TERNARY)
def _ternary(d: Decoding) -> Execute:
    function, to = TERNARY[d.name], d.destination()
    a, b, c = (float32(op) for op in d.operands[1:])
    modify = _output_modifiers(d)
    if modify is None:
        return lambda w: w.write_float(to, function(a(w), b(w), c(w)))
    return lambda w: w.write_float(to, modify(function(a(w), b(w), c(w))))


@opcodes("v_fmac_f32", "v_fmamk_f32", "v_fmaak_f32", "v_mac_f32", "v_madmk_f32", "v_madak_f32")
def _multiply_add_forms(d: Decoding) -> Execute:
    """mac: D += S0 * S1; mk: D = S0 * K + S1; ak: D = S0 * S1 + K, operands as printed."""
    function = fma32 if d.name.startswith("v_fma") else _mad
    to = d.destination()
    a, b = float32(d.operands[1]), float32(d.operands[2])
    c = float32(d.operands[0] if d.name in ("v_fmac_f32", "v_mac_f32") else d.operands[3])
    modify = _output_modifiers(d)
    if modify is None:
        return lambda w: w.write_float(to, function(a(w), b(w), c(w)))
    return lambda w: w.write_float(to, modify(function(a(w), b(w), c(w))))


@opcodes("v_ldexp_f32")
def _ldexp32(d: Decoding) -> Execute:
    to, a, b = d.destination(), float32(d.operands[1]), vector32(d.operands[2])
    return lambda w: w.write_float(to, _ldexp(a(w), b(w).view(np.int32)))


# Conversions.


def half_bits(x: Array) -> Array:
    """float16 values as zero-extended uint32."""
    return x.view(np.uint16).astype(_U32)


def to_half_toward_zero(x: Array) -> Array:
    """float32 -> float16 bits, truncating: the largest finite value instead of infinity."""
    h = x.astype(np.float16)
    too_big = (np.abs(h.astype(_F32)) > np.abs(x)) & np.isfinite(x)
    return half_bits(h) - too_big.astype(_U32)


def _to_integer(low: float, high: float, kind: type) -> Callable[[Array], Array]:
    """Truncate with saturation; NaN gives 0."""

    def convert(a: Array) -> Array:
        x = np.clip(np.trunc(a.astype(_F64)), low, high)
        return np.where(np.isnan(x), 0.0, x).astype(np.int64).astype(kind).view(_U32)

    return convert


# float32 in, 32 bits out.
FROM_FLOAT32: dict[str, Callable[[Array], Array]] = {
    "v_cvt_u32_f32": _to_integer(0.0, 2.0**32 - 1, _U32),
    "v_cvt_i32_f32": _to_integer(-(2.0**31), 2.0**31 - 1, np.int32),
    "v_cvt_f16_f32": lambda a: half_bits(a.astype(np.float16)),
    "v_frexp_exp_i32_f32": _exponent,
}

# 32 bits in, float32 out.
TO_FLOAT32: dict[str, Callable[[Array], Array]] = {
    "v_cvt_f32_u32": lambda a: a.astype(_F32),
    "v_cvt_f32_i32": lambda a: a.view(np.int32).astype(_F32),
    "v_cvt_f32_ubyte0": lambda a: (a & _U32(0xFF)).astype(_F32),
    "v_cvt_f32_ubyte1": lambda a: (a >> _U32(8) & _U32(0xFF)).astype(_F32),
    "v_cvt_f32_ubyte2": lambda a: (a >> _U32(16) & _U32(0xFF)).astype(_F32),
    "v_cvt_f32_ubyte3": lambda a: (a >> _U32(24)).astype(_F32),
}


@opcodes(*FROM_FLOAT32)
def _from_float32(d: Decoding) -> Execute:
    function, to, a = FROM_FLOAT32[d.name], d.destination(), float32(d.operands[1])
    return lambda w: w.write_vector(to, function(a(w)))


@opcodes(*TO_FLOAT32)
def _to_float32(d: Decoding) -> Execute:
    function, to, a = TO_FLOAT32[d.name], d.destination(), vector32(d.operands[1])
    return lambda w: w.write_float(to, function(a(w)))


@opcodes("v_cvt_f32_f16")
def _half_to_float(d: Decoding) -> Execute:
    to, a = d.destination(), float16(d.operands[1])
    return lambda w: w.write_float(to, a(w).astype(_F32))


@opcodes("v_cvt_pkrtz_f16_f32")
def _pack_toward_zero(d: Decoding) -> Execute:
    to, a, b = d.destination(), float32(d.operands[1]), float32(d.operands[2])
    return lambda w: w.write_vector(
        to, to_half_toward_zero(a(w)) | to_half_toward_zero(b(w)) << _U32(16)
    )


@opcodes("v_cvt_pk_f16_f32")
def _pack_nearest(d: Decoding) -> Execute:
    to, a, b = d.destination(), float32(d.operands[1]), float32(d.operands[2])
    return lambda w: w.write_vector(
        to,
        half_bits(a(w).astype(np.float16)) | half_bits(b(w).astype(np.float16)) << _U32(16),
    )


def to_bfloat16(x: Array) -> Array:
    """float32 -> bfloat16 bits, to nearest even; NaNs stay NaNs."""
    bits = x.view(_U32)
    rounded = (bits + _U32(0x7FFF) + (bits >> _U32(16) & _U32(1))) >> _U32(16)
    return np.where(np.isnan(x), bits >> _U32(16) | _U32(0x40), rounded)


@opcodes("v_cvt_pk_bf16_f32")
def _pack_bfloat16(d: Decoding) -> Execute:
    """gfx950"""
    to, a, b = d.destination(), float32(d.operands[1]), float32(d.operands[2])
    return lambda w: w.write_vector(to, to_bfloat16(a(w)) | to_bfloat16(b(w)) << _U32(16))


@opcodes("v_cvt_pk_fp8_f32")
def _pack_float8(d: Decoding) -> Execute:
    """Into one half of D, which op_sel chooses; the other half stays."""
    to, form = d.destination(), float8.of_arch(d.arch)
    a, b = float32(d.operands[1]), float32(d.operands[2])
    *sources, high = d.instruction.bits_modifier("op_sel", 3, 0)
    if any(sources):
        raise UnsupportedInstruction(f"op_sel of a source: {d.instruction!r}")
    shift, kept = (_U32(16), _LOW16) if high else (_U32(0), ~_LOW16)

    def execute(w: Wave) -> None:
        pair = form.encode(np.asarray(a(w))) | form.encode(np.asarray(b(w))) << _U32(8)
        w.write_vector(to, w.v[to] & kept | pair << shift)

    return execute


@opcodes("v_cvt_f32_fp8")
def _float8_to_float(d: Decoding) -> Execute:
    to, a, form = d.destination(), vector32(d.operands[1]), float8.of_arch(d.arch)
    return lambda w: w.write_float(to, form.decode(a(w) & _U32(0xFF)).astype(_F32))


# Mixed precision: each operand is float32, or one half of a register as float16.


@opcodes("v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16")
def _mix(d: Decoding) -> Execute:
    """A float32 fma; mixlo and mixhi then round to float16 and keep the other half of D."""
    to = d.destination()
    half = d.instruction.bits_modifier("op_sel", 3, 0)
    is_half = d.instruction.bits_modifier("op_sel_hi", 3, 0)
    a, b, c = (_mixed(op, is_half[i], half[i]) for i, op in enumerate(d.operands[1:]))
    clamp = _output_modifiers(d)
    name = d.name

    def execute(w: Wave) -> None:
        r = fma32(a(w), b(w), c(w))
        if clamp is not None:
            r = clamp(r)
        if name == "v_fma_mix_f32":
            w.write_float(to, r)
            return
        h = half_bits(r.astype(np.float16))
        old = w.v[to]
        if name == "v_fma_mixlo_f16":
            w.write_vector(to, (old & ~_LOW16) | h)
        else:
            w.write_vector(to, (old & _LOW16) | h << _U32(16))

    return execute


def _mixed(op: Operand, is_half: int, half: int) -> Read:
    if not is_half:
        return float32(op)
    plain = Operand(op.kind, op.index, op.count, op.text)
    read = float16(plain, half)
    negate, absolute = op.negate, op.absolute

    def convert(w: Wave) -> Array:
        x = read(w).astype(_F32)
        if absolute:
            x = np.abs(x)
        return -x if negate else x

    return convert


# Packed float32.

_PACKED: dict[str, Callable[..., Array]] = {
    "v_pk_mul_f32": lambda a, b: a * b,
    "v_pk_add_f32": lambda a, b: a + b,
    "v_pk_fma_f32": fma32,
}


@opcodes(*_PACKED)
def _packed(d: Decoding) -> Execute:
    """Two float32 operations; op_sel and op_sel_hi choose the half each one reads."""
    function, to, sources = _PACKED[d.name], d.destination(2), d.operands[1:]
    count = len(sources)
    low = d.instruction.bits_modifier("op_sel", count, 0)
    high = d.instruction.bits_modifier("op_sel_hi", count, 1)
    negate_low = d.instruction.bits_modifier("neg_lo", count, 0)
    negate_high = d.instruction.bits_modifier("neg_hi", count, 0)
    reads_low = [_packed_float(*x) for x in zip(sources, low, negate_low, strict=True)]
    reads_high = [_packed_float(*x) for x in zip(sources, high, negate_high, strict=True)]

    def execute(w: Wave) -> None:
        first = function(*[r(w) for r in reads_low])
        second = function(*[r(w) for r in reads_high])
        w.write_float(to, first)
        w.write_float(to + 1, second)

    return execute


def _packed_float(op: Operand, half: int, negate: int) -> Read:
    bits = packed_half(op, half, "f32")
    if op.kind == "v" and not negate:
        i = op.index + half
        return lambda w: w.f[i]
    if negate:
        return lambda w: (bits(w) ^ _SIGN).view(_F32)
    return lambda w: bits(w).view(_F32)


# float16. The upper half of the destination becomes 0, as in all archs before gfx10.

_HALVES: dict[str, Callable[..., Array]] = {
    "v_add_f16": lambda a, b: a + b,
    "v_sub_f16": lambda a, b: a - b,
    "v_mul_f16": lambda a, b: a * b,
}


@opcodes(*_HALVES)
def _halves(d: Decoding) -> Execute:
    function, to = _HALVES[d.name], d.destination()
    if _output_modifiers(d) is not None:
        raise UnsupportedInstruction(f"modifiers of the result of {d.name}")
    a, b = float16(d.operands[1]), float16(d.operands[2])
    return lambda w: w.write_vector(to, half_bits(function(a(w), b(w))))


# Packed float16.

_PACKED_HALVES: dict[str, Callable[..., Array]] = {
    "v_pk_mul_f16": lambda a, b: a * b,
    "v_pk_add_f16": lambda a, b: a + b,
}


@opcodes(*_PACKED_HALVES)
def _packed_halves(d: Decoding) -> Execute:
    """Two float16 operations; op_sel and op_sel_hi choose the half each one reads."""
    function, to, sources = _PACKED_HALVES[d.name], d.destination(), d.operands[1:]
    count = len(sources)
    low = d.instruction.bits_modifier("op_sel", count, 0)
    high = d.instruction.bits_modifier("op_sel_hi", count, 1)
    negate_low = d.instruction.bits_modifier("neg_lo", count, 0)
    negate_high = d.instruction.bits_modifier("neg_hi", count, 0)
    reads_low = [_packed_half(*x) for x in zip(sources, low, negate_low, strict=True)]
    reads_high = [_packed_half(*x) for x in zip(sources, high, negate_high, strict=True)]

    def execute(w: Wave) -> None:
        first = function(*[r(w) for r in reads_low])
        second = function(*[r(w) for r in reads_high])
        w.write_vector(to, half_bits(first) | half_bits(second) << _U32(16))

    return execute


def _packed_half(op: Operand, half: int, negate: int) -> Read:
    if op.kind == "constant":
        raise UnsupportedInstruction(f"constant {op.text} of a packed float16 operation")
    read = float16(op, half)
    return (lambda w: -read(w)) if negate else read


# Division helpers. The compiler's sequence: div_scale (twice), rcp, fma refinement, div_fmas,
# div_fixup.


@dataclasses.dataclass(frozen=True)
class _Division:
    """A format, and the limits at which the manual's pseudo code scales its divisions."""

    words: type
    floats: type
    wider: type  # in which quotients and products are no denormals
    mantissa_bits: int
    smallest_normal: float
    scale: float
    large_quotient: int  # differences of exponents
    vanishing_quotient: int
    small_numerator: int  # a biased exponent
    exponent_of_one: int
    quiet_nan: int  # of an invalid division

    def exponent(self, x: Array) -> Array:
        """The biased exponent field."""
        return (x.view(self.words) << self.words(1) >> self.words(self.mantissa_bits + 1)).astype(
            np.int32
        )

    def is_denormal(self, x: Array) -> Array:
        # By its bits: to the processor it may be zero (float_environment.py).
        return (self.exponent(x) == 0) & (x.view(self.words) << self.words(1) != 0)

    def quiet(self, x: Array) -> Array:
        bit = self.words(1 << self.mantissa_bits - 1)
        return (x.view(self.words) | bit).view(self.floats)

    def quotient_is_denormal(self, numerator: Array, denominator: Array) -> Array:
        quotient = numerator.astype(self.wider) / denominator.astype(self.wider)
        return np.abs(quotient) < self.smallest_normal


_DIVISION32 = _Division(_U32, _F32, _F64, 23, 2.0**-126, 2.0**64, 96, -150, 23, 127, 0xFFC0_0000)
_DIVISION64 = _Division(_U64, _F64, np.longdouble, 52, 2.0**-1022, 2.0**128, 768, -1075, 53, 1023,
                        0xFFF8_0000_0000_0000)  # fmt: skip


def _division(d: Decoding) -> tuple[_Division, Callable[[Operand], Read], Callable]:
    """The format of an instruction, how it reads an operand, and what writes the result."""
    if d.name.endswith("f32"):
        to = d.destination()
        return _DIVISION32, float32, lambda w, r: w.write_float(to, r.astype(_F32))
    to = d.destination(2)
    return _DIVISION64, float64, lambda w, r: w.write_vector64(to, np.asarray(r, _F64).view(_U64))


@opcodes("v_div_scale_f32", "v_div_scale_f64")
def _div_scale(d: Decoding) -> Execute:
    """S0 is the value to scale: the denominator S1 or the numerator S2. VCC (the second
    destination) marks lanes whose quotient v_div_fmas must scale back.

    Where both 1/S1 and S2/S1 are denormal the manual's pseudo code scales the denominator up, to
    infinity; scaling it down is what makes the sequence give the quotient.
    """
    form, read, write = _division(d)
    flag_to = d.operands[1].index
    a, b, c = (read(op) for op in d.operands[2:])
    up, down = form.wider(form.scale), form.wider(1 / form.scale)

    def execute(w: Wave) -> None:
        s0, s1, s2 = (np.broadcast_to(x(w), (w.size, 64)) for x in (a, b, c))
        quotient_denormal = form.quotient_is_denormal(s2, s1)
        reciprocal_denormal = form.quotient_is_denormal(np.ones_like(s1), s1)
        same_denominator = s0.view(form.words) == s1.view(form.words)
        same_numerator = s0.view(form.words) == s2.view(form.words)
        one = np.ones(s0.shape, form.wider)
        conditions = [
            form.exponent(s2) - form.exponent(s1) >= form.large_quotient,
            form.is_denormal(s1),
            reciprocal_denormal & quotient_denormal,
            reciprocal_denormal,
            quotient_denormal,
            form.exponent(s2) <= form.small_numerator,
        ]
        scales = [
            np.where(same_denominator, up, one),
            one * up,
            np.where(same_denominator, down, one),
            one * down,
            np.where(same_numerator, up, one),
            one * up,
        ]
        r = (s0.astype(form.wider) * np.select(conditions, scales, one)).astype(form.floats)
        zero = (s1 == 0) | (s2 == 0)
        write(w, np.where(zero, form.floats(np.nan), r))
        flags = np.select(conditions, [one, one * 0, one, one * 0, one, one * 0], 0.0) != 0
        w.write_mask(flag_to, flags & ~zero & w.lanes)

    return execute


def _scaled_fma32(x: Array, y: Array, z: Array, scale: Array) -> Array:
    exact = round_to_odd_sum(x.astype(_F64) * y.astype(_F64), z.astype(_F64))
    return (exact * scale).astype(_F32)


def _scaled_fma64(x: Array, y: Array, z: Array, scale: Array) -> Array:
    """Rounds twice where the result is denormal."""
    return fma64(x, y, z) * scale


@opcodes("v_div_fmas_f32", "v_div_fmas_f64")
def _div_fmas(d: Decoding) -> Execute:
    """An fma, scaled up (or down for a small addend) in the lanes that VCC marks."""
    form, read, write = _division(d)
    a, b, c = (read(op) for op in d.operands[1:])
    narrow = form is _DIVISION32
    fma, scaled_fma = (fma32, _scaled_fma32) if narrow else (fma64, _scaled_fma64)

    def execute(w: Wave) -> None:
        x, y, z = a(w), b(w), c(w)
        r = fma(x, y, z)
        marked = w.read_mask(VCC)
        if marked.any():
            large = form.exponent(z) > form.exponent_of_one
            scale = np.where(large, form.scale, 1 / form.scale)
            r = np.where(marked, scaled_fma(x, y, z, scale), r)
        write(w, r)

    return execute


@opcodes("v_div_fixup_f32", "v_div_fixup_f64")
def _div_fixup(d: Decoding) -> Execute:
    """S0 the quotient, S1 the denominator, S2 the numerator: the special cases of a division.

    The steps before turn a quotient that overflows into a NaN; with ordinary operands it is the
    infinity that IEEE division gives.
    """
    form, read, write = _division(d)
    a, b, c = (read(op) for op in d.operands[1:])

    def execute(w: Wave) -> None:
        q, den, num = (np.broadcast_to(x(w), (w.size, 64)) for x in (a, b, c))
        sign = np.signbit(den) ^ np.signbit(num)
        zero = np.where(sign, form.floats(-0.0), form.floats(0))
        infinity = np.where(sign, form.floats(-np.inf), form.floats(np.inf))
        invalid = np.full(q.shape, form.quiet_nan, form.words).view(form.floats)
        r = np.select(
            [
                np.isnan(num),
                np.isnan(den),
                ((num == 0) & (den == 0)) | (np.isinf(num) & np.isinf(den)),
                (den == 0) | np.isinf(num),
                np.isinf(den) | (num == 0),
                form.exponent(num) - form.exponent(den) < form.vanishing_quotient,
                np.isnan(q),
            ],
            [form.quiet(num), form.quiet(den), invalid, infinity, zero, zero, infinity],
            np.where(sign, -np.abs(q), np.abs(q)),
        )
        write(w, r)

    return execute


# float64.


@opcodes("v_cvt_f64_f32")
def _float_to_double(d: Decoding) -> Execute:
    to, a = d.destination(2), float32(d.operands[1])
    return lambda w: w.write_vector64(to, np.asarray(a(w).astype(_F64)).view(_U64))


@opcodes("v_cvt_f64_u32", "v_cvt_f64_i32")
def _integer_to_double(d: Decoding) -> Execute:
    to, a = d.destination(2), vector32(d.operands[1])
    kind = np.int32 if d.name.endswith("i32") else _U32
    return lambda w: w.write_vector64(to, np.asarray(a(w).view(kind).astype(_F64)).view(_U64))


@opcodes("v_cvt_f32_f64")
def _double_to_float(d: Decoding) -> Execute:
    to, a = d.destination(), float64(d.operands[1])
    return lambda w: w.write_float(to, a(w).astype(_F32))


@opcodes("v_add_f64", "v_mul_f64", "v_fma_f64", "v_fmac_f64")
def _double(d: Decoding) -> Execute:
    to = d.destination(2)
    sources = [float64(op) for op in d.operands[1:]]
    if d.name == "v_fmac_f64":
        sources.append(float64(d.operands[0]))
    functions = {"v_add_f64": np.add, "v_mul_f64": np.multiply}
    function = functions.get(d.name, fma64)
    return lambda w: w.write_vector64(to, np.asarray(function(*[s(w) for s in sources])).view(_U64))


@opcodes("v_rcp_f64")
def _reciprocal_double(d: Decoding) -> Execute:
    """Correctly rounded here; hardware gives about half the bits, which its users refine."""
    to, a = d.destination(2), float64(d.operands[1])
    return lambda w: w.write_vector64(to, np.asarray(1.0 / a(w)).view(_U64))
