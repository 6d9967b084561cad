# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Sub-dword addressing: every opcode with every kind of selector."""

from __future__ import annotations

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
from gfxemu.tests.exact import EDGE_F16, EDGE_F32, EDGE_U32, F16, F32, M32, signed
from gfxemu.tests.vector_float_test import _BINARY as FLOAT_BINARY
from gfxemu.tests.vector_integer_test import _BINARY as INTEGER_BINARY
from gfxemu.tests.vector_integer_test import _UNARY as INTEGER_UNARY
from gfxemu.tests.vector_lanes_test import _INTEGER as RELATIONS
from gfxemu.wave import EXEC, VCC

_SELECTORS = ["BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"]
_NO_SDWA = ("v_add_i32", "v_sub_i32", "v_mul_lo_u32", "v_mul_hi_u32", "v_mul_hi_i32",
            "v_bcnt_u32_b32", "v_bfm_b32")  # fmt: skip
_FLOATS = ("v_add_f32", "v_sub_f32", "v_mul_f32", "v_max_f32", "v_min_f32")


def _field(selector: str) -> tuple[int, int]:
    kind, _, n = selector.partition("_")
    bits = {"BYTE": 8, "WORD": 16, "DWORD": 32}[kind]
    return int(n or 0) * bits, bits


def _read(value: int, selector: str, extend: bool = False) -> int:
    shift, bits = _field(selector)
    part = value >> shift & ((1 << bits) - 1)
    return signed(part, bits) & M32 if extend else part


def _write(result: int, old: int, selector: str, unused: str) -> int:
    shift, bits = _field(selector)
    if bits == 32:
        return result & M32
    part = (result & ((1 << bits) - 1)) << shift
    if unused == "UNUSED_PRESERVE":
        return part | old & ~(((1 << bits) - 1) << shift) & M32
    if unused == "UNUSED_SEXT":
        return (signed(result, bits) << shift) & M32
    return part


def _float(function):
    def f(*bits: int) -> int:
        return exact.encode(function(*(exact.decode(b, F32) for b in bits)), F32)

    return f


_UNARY = {
    "v_mov_b32": INTEGER_UNARY["v_mov_b32"],
    "v_not_b32": INTEGER_UNARY["v_not_b32"],
    "v_cvt_f32_u32": lambda a: exact.encode(exact.from_fraction(exact.Fraction(a)), F32),
    "v_cvt_f32_i32": lambda a: exact.encode(
        exact.from_fraction(exact.Fraction(signed(a, 32))), F32
    ),
    "v_cvt_f32_f16": lambda a: exact.encode(exact.decode(a & 0xFFFF, F16), F32),
    "v_cvt_f16_f32": lambda a: exact.encode(exact.decode(a, F32), F16),
}
_BINARY = {
    **{n: f for n, f in INTEGER_BINARY.items() if n not in _NO_SDWA},
    **{n: _float(FLOAT_BINARY[n]) for n in _FLOATS},
}


_UNUSED = ["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"]
_TWO_HALVES = [a << 16 | b for a, b in zip(EDGE_F16, reversed(EDGE_F16), strict=True)]


def _float_agree(actual: int, expected: int) -> bool:
    return exact.same_float(actual, expected, F32)


def _upper_half_agrees(actual: int, expected: int) -> bool:
    return exact.same_float(actual >> 16, expected >> 16, F16) and not actual & 0xFFFF


def _unary_case(name: str, selector: str, to: str, unused: str, pool, **more) -> VectorCase:
    function = _UNARY[name]
    line = f"{name}_sdwa v10, v1 dst_sel:{to} dst_unused:{unused} src0_sel:{selector}"

    def expected(a: int, old: int) -> int:
        return _write(function(_read(a, selector)), old, to, unused)

    return VectorCase(line, ((1, 32, pool),), expected, uses_old=True, **more)


def _binary_case(
    name: str, a_sel: str, b_sel: str, to: str, unused: str, extend: bool
) -> VectorCase:
    function = _BINARY[name]
    line = (
        f"{name}_sdwa v10, {'sext(v1)' if extend else 'v1'}, v2 dst_sel:{to} dst_unused:{unused} "
        f"src0_sel:{a_sel} src1_sel:{b_sel}"
    )

    def expected(a: int, b: int, old: int) -> int:
        result = function(_read(a, a_sel, extend), _read(b, b_sel)) & M32
        return _write(result, old, to, unused)

    sources = ((1, 32, EDGE_U32[::2]), (2, 32, EDGE_U32[1::2]))
    return VectorCase(line, sources, expected, uses_old=True)


def _float_case(name: str) -> VectorCase:
    line = f"{name}_sdwa v10, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD"
    sources = ((1, 32, EDGE_F32), (2, 32, EDGE_F32))
    return VectorCase(line + " src1_sel:DWORD", sources, _BINARY[name], agree=_float_agree)


def _cases() -> list[VectorCase]:
    """Selectors and ways to fill the rest of D go round, so that every one meets every other."""
    out = [_float_case(name) for name in _FLOATS]
    for i, name in enumerate(("v_mov_b32", "v_not_b32")):
        for j, selector in enumerate(_SELECTORS):
            out.append(
                _unary_case(name, selector, _SELECTORS[(i + j) % 7], _UNUSED[(i + j) % 3], EDGE_U32)
            )
    for name in ("v_cvt_f32_u32", "v_cvt_f32_i32"):
        for selector in _SELECTORS:
            out.append(_unary_case(name, selector, "DWORD", "UNUSED_PAD", EDGE_U32))
    for selector in ("WORD_0", "WORD_1"):
        out.append(
            _unary_case(
                "v_cvt_f32_f16", selector, "DWORD", "UNUSED_PAD", _TWO_HALVES, agree=_float_agree
            )
        )
    out.append(
        _unary_case(
            "v_cvt_f16_f32", "DWORD", "WORD_1", "UNUSED_PAD", EDGE_F32, agree=_upper_half_agrees
        )
    )
    for i, name in enumerate(n for n in _BINARY if n not in _FLOATS):
        for j in range(4):
            a_sel, b_sel, to = (_SELECTORS[(i + k * j + k) % 7] for k in (1, 2, 3))
            out.append(_binary_case(name, a_sel, b_sel, to, _UNUSED[(i + j) % 3], j % 2 == 1))
    return out


_CASES = _cases()
_COMPARES = [
    (
        f"{name}_{r}_{t}_sdwa vcc, {'sext(v1)' if t[0] == 'i' else 'v1'}, v2 "
        f"src0_sel:{a} src1_sel:{b}",
        r,
        t,
        a,
        b,
    )
    for name in ("v_cmp", "v_cmpx")
    for i, r in enumerate(RELATIONS)
    for j, t in enumerate(("u32", "i32", "u16", "i16"))
    for a, b in [(_SELECTORS[(i + j) % 7], _SELECTORS[(i * 2 + j + 1) % 7])]
]
_SELECT = (
    "v_cndmask_b32_sdwa v10, v1, v2, vcc dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE "
    "src0_sel:BYTE_1 src1_sel:WORD_1"
)
BENCH = Bench([*(c.line for c in _CASES), *(c[0] for c in _COMPARES), _SELECT])
TESTED = BENCH.names


@pytest.mark.parametrize("case", _CASES, ids=lambda c: c.line.split(" ")[0] + c.line[-30:])
def test_operation(case: VectorCase) -> None:
    check_vector(BENCH, case)


@pytest.mark.parametrize(("line", "relation", "kind", "a_sel", "b_sel"), _COMPARES)
def test_compare(line: str, relation: str, kind: str, a_sel: str, b_sel: str) -> None:
    bits = int(kind[1:])

    def view(x: int) -> int:
        return signed(x, bits) if kind[0] == "i" else x % (1 << bits)

    a = [EDGE_U32[i % len(EDGE_U32)] for i in range(TOTAL)]
    b = [EDGE_U32[(i * 5 + 3) % len(EDGE_U32)] for i in range(TOTAL)]
    for exec_mask in MASKS:
        wave = make_wave(exec_mask)
        set_vector(wave, 1, a)
        set_vector(wave, 2, b)
        BENCH.run(line, wave)
        wanted = [
            int(
                on
                and RELATIONS[relation](
                    view(_read(x, a_sel, kind[0] == "i")), view(_read(y, b_sel))
                )
            )
            for x, y, on in zip(a, b, active(exec_mask), strict=True)
        ]
        assert get_mask(wave, VCC) == wanted
        assert get_mask(wave, EXEC) == (wanted if "cmpx" in line else active(exec_mask))


@pytest.mark.parametrize("exec_mask", MASKS)
def test_select(exec_mask: int) -> None:
    choice, old = 0x0F0F_1234_8765_FFFF, 0x1357_9BDF
    a = [EDGE_U32[i % len(EDGE_U32)] for i in range(TOTAL)]
    b = [EDGE_U32[(i * 5 + 3) % len(EDGE_U32)] for i in range(TOTAL)]
    wave = make_wave(exec_mask)
    set_vector(wave, 1, a)
    set_vector(wave, 2, b)
    set_vector(wave, 10, [old] * TOTAL)
    wave.write64(VCC, choice)
    BENCH.run(_SELECT, wave)
    for lane, (value, on) in enumerate(zip(get_vector(wave, 10), active(exec_mask), strict=True)):
        chosen = b[lane] >> 16 if choice >> lane % 64 & 1 else a[lane] >> 8 & 0xFF
        assert value == (chosen << 16 | old & 0xFFFF if on else old)
