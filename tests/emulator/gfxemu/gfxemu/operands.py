# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Operand text -> functions that read the operand from a wave.

CDNA3 ISA, "Scalar/Vector ALU Operands": inline constants are integers -16..64 and a few floats;
any other number is a literal. The bit pattern of a float constant depends on the operand's type;
the `kind` arguments say which ("b32", "f32", "f16", "b64", "f64").
"""

from __future__ import annotations

import dataclasses
import re
import struct
from collections.abc import Callable

import numpy as np

from gfxemu.errors import UnsupportedInstruction
from gfxemu.scalars import MASK32, MASK64, Scalar
from gfxemu.wave import EXEC, M0, VCC, LaneMask, Wave

Vector32 = Callable[[Wave], np.ndarray]
ReadScalar = Callable[[Wave], Scalar]

_SPECIAL = {
    "vcc": (VCC, 2), "vcc_lo": (VCC, 1), "vcc_hi": (VCC + 1, 1),
    "exec": (EXEC, 2), "exec_lo": (EXEC, 1), "exec_hi": (EXEC + 1, 1), "m0": (M0, 1),
}  # fmt: skip
_REGISTER = re.compile(r"^([vsa])(?:(\d+)|\[(\d+):(\d+)\])$")
_INTEGER = re.compile(r"^-?(0x[0-9a-f]+|\d+)$")
_ONE_OVER_TWO_PI = 0.15915494309189532
_SIGN32, _SIGN16 = np.uint32(0x8000_0000), np.uint32(0x8000)


@dataclasses.dataclass(frozen=True)
class Operand:
    """kind: 'v' (vector register, AccVGPRs included), 's', 'constant' or 'off'."""

    kind: str
    index: int = 0
    count: int = 1
    text: str = ""
    negate: bool = False
    absolute: bool = False
    sign_extend: bool = False

    @property
    def plain(self) -> bool:
        return not (self.negate or self.absolute or self.sign_extend)


def parse(text: str, accum_offset: int) -> Operand:
    """Parse one operand; `accum_offset` is the index of a0 among the vector registers."""
    original = text
    sign_extend = text.startswith("sext(")
    if sign_extend:
        text = text[5:-1]
    # Of an integer constant, which a minus sign would be part of.
    negate = text.startswith("neg(")
    if negate:
        text = text[4:-1]
    elif text.startswith("-") and not _is_number(text):
        negate, text = True, text[1:]
    absolute = text.startswith("|")
    if absolute:
        text = text.strip("|")
    modifiers = {"negate": negate, "absolute": absolute, "sign_extend": sign_extend}
    if text == "off":
        return Operand("off")
    if text in _SPECIAL:
        index, count = _SPECIAL[text]
        return Operand("s", index, count, original, **modifiers)
    match = _REGISTER.match(text)
    if match:
        first = int(match[2] or match[3])
        count = 1 if match[2] else int(match[4]) - first + 1
        if match[1] == "s":
            return Operand("s", first, count, original, **modifiers)
        if match[1] == "a":
            first += accum_offset
        return Operand("v", first, count, original, **modifiers)
    if text.startswith("lit("):  # a literal where an inline constant would do
        text = text[4:-1]
    if _is_number(text):
        return Operand("constant", text=text, **modifiers)
    raise UnsupportedInstruction(f"operand {original!r} is not implemented")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return bool(_INTEGER.match(text))
    return True


def constant_bits(text: str, kind: str) -> int:
    """The bit pattern of a constant for an operand of that kind."""
    wide = kind.endswith("64")
    if _INTEGER.match(text):
        value = int(text, 0)
        if kind == "f64" and "x" in text:
            return (value & MASK32) << 32  # a 32-bit literal is the high half of a double
        return value & (MASK64 if wide else MASK32)
    value = _ONE_OVER_TWO_PI if text == "0.15915494" else float(text)
    layout = {"f64": "<dQ", "b64": "<dQ", "f16": "<eH"}.get(kind, "<fI")
    return struct.unpack("<" + layout[2], struct.pack(layout[:2], value))[0]


# Scalar operands.


def scalar32(op: Operand, kind: str = "b32") -> ReadScalar:
    if op.kind == "constant":
        value = constant_bits(op.text, kind)
        return lambda w: value
    i = _sgpr(op)
    half = i >> 1

    def read(w: Wave) -> Scalar:
        return w.s[i] if w.masks[half] is None else w.read32(i)

    return read


def scalar64(op: Operand) -> ReadScalar:
    if op.kind == "constant":
        value = constant_bits(op.text, "b64")
        return lambda w: value
    i = _sgpr(op)
    return lambda w: w.read64(i)


def lane_mask(op: Operand) -> Callable[[Wave], LaneMask]:
    if op.kind == "constant":
        value = constant_bits(op.text, "b64")
        return lambda w: w.unpack(value)
    i = _sgpr(op)
    return lambda w: w.read_mask(i)


def _sgpr(op: Operand) -> int:
    if op.kind != "s":
        raise UnsupportedInstruction(f"{op.text!r} where a scalar register was expected")
    return op.index


def to_lanes32(value: Scalar) -> np.ndarray:
    """A scalar as something that broadcasts over [workgroup][lane], uint32."""
    if type(value) is int:
        return np.uint32(value)
    return value.astype(np.uint32)[:, None]


def to_lanes64(value: Scalar) -> np.ndarray:
    return np.uint64(value) if type(value) is int else value[:, None]


# Vector operands (which may be scalar registers and constants, broadcast to all lanes).


def vector32(op: Operand, kind: str = "b32") -> Vector32:
    """Read 32 bits per lane, with the float modifiers of the kind applied."""
    if op.kind == "v":
        i = op.index
        if op.plain:
            return lambda w: w.v[i]
        read: Vector32 = lambda w: w.v[i]  # noqa: E731
    elif op.kind == "constant":
        value = np.uint32(constant_bits(op.text, kind) & MASK32)
        read = lambda w: value  # noqa: E731
    else:
        scalar = scalar32(op)
        read = lambda w: to_lanes32(scalar(w))  # noqa: E731
    if op.sign_extend:
        raise UnsupportedInstruction(f"sext() outside of SDWA: {op.text}")
    return _with_sign(read, op, _SIGN16 if kind == "f16" else _SIGN32)


def _with_sign(read: Vector32, op: Operand, sign: np.unsignedinteger) -> Vector32:
    negate, absolute = op.negate, op.absolute
    if absolute and negate:
        return lambda w: read(w) | sign
    if absolute:
        return lambda w: read(w) & ~sign
    if negate:
        return lambda w: read(w) ^ sign
    return read


def float32(op: Operand) -> Vector32:
    """Read float32 per lane."""
    if op.kind == "v" and op.plain:
        i = op.index
        return lambda w: w.f[i]
    bits = vector32(op, "f32")
    if op.kind == "constant":
        value = bits(None).view(np.float32)  # type: ignore[arg-type]
        return lambda w: value
    return lambda w: bits(w).view(np.float32)


def float16(op: Operand, half: int = 0) -> Vector32:
    """Read one half of a register as float16."""
    bits = vector32(op, "f16")
    if op.kind == "constant":
        value = np.uint16(int(bits(None)) & 0xFFFF).view(np.float16)  # type: ignore[arg-type]
        return lambda w: value
    shift = np.uint32(16 * half)
    return lambda w: (bits(w) >> shift).astype(np.uint16).view(np.float16)


def vector64(op: Operand, kind: str = "b64") -> Vector32:
    """Read uint64 per lane: a register pair, an SGPR pair or a constant."""
    if op.absolute or op.sign_extend:
        raise UnsupportedInstruction(f"modifier of 64-bit operand {op.text!r} is not implemented")
    if op.kind == "v":
        i = op.index
        shift = np.uint64(32)

        def read(w):
            return w.v[i].astype(np.uint64) | (w.v[i + 1].astype(np.uint64) << shift)
    elif op.kind == "constant":
        value = np.uint64(constant_bits(op.text, kind))
        read = lambda w: value  # noqa: E731
    else:
        scalar = scalar64(op)
        read = lambda w: to_lanes64(scalar(w))  # noqa: E731
    if op.negate:
        sign = np.uint64(1 << 63)
        return lambda w: read(w) ^ sign
    return read


def float64(op: Operand) -> Vector32:
    bits = vector64(op, "f64")
    return lambda w: bits(w).view(np.float64)
