# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Operands from other lanes: every control, every opcode, every mask."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gfxemu.dpp import OPCODES
from gfxemu.tests import exact
from gfxemu.tests.bench import (
    LANES,
    MASKS,
    TOTAL,
    Bench,
    active,
    get_vector,
    make_wave,
    set_vector,
)
from gfxemu.tests.exact import EDGE_F32, EDGE_U32, F32, M32
from gfxemu.tests.vector_float_test import _BINARY as FLOAT_BINARY
from gfxemu.tests.vector_integer_test import _BINARY as INTEGER_BINARY

Source = Callable[[int], int | None]


def _within(size: int, offset: int) -> Source:
    """The lane `offset` further on in the same group of `size`, or none."""
    return lambda i: i + offset if 0 <= i % size + offset < size else None


# Control -> the lane that lane i reads.
_CONTROLS: dict[str, Source] = {
    "quad_perm:[1,0,3,2]": lambda i: i ^ 1,
    "quad_perm:[2,3,0,1]": lambda i: i ^ 2,
    "quad_perm:[3,3,0,1]": lambda i: i - i % 4 + (3, 3, 0, 1)[i % 4],
    "row_mirror": lambda i: i ^ 15,
    "row_half_mirror": lambda i: i ^ 7,
    "row_shl:1": _within(16, 1),
    "row_shl:15": _within(16, 15),
    "row_shr:1": _within(16, -1),
    "row_shr:8": _within(16, -8),
    "row_ror:3": lambda i: i - i % 16 + (i + 13) % 16,
    "row_newbcast:5": lambda i: i - i % 16 + 5,
    "row_bcast:15": lambda i: {0: None, 1: 15, 2: 31, 3: 47}[i // 16],
    "row_bcast:31": lambda i: 31 if i >= 32 else None,
    "wave_shl:1": _within(64, 1),
    "wave_shr:1": _within(64, -1),
    "wave_rol:1": lambda i: (i + 1) % 64,
    "wave_ror:1": lambda i: (i + 63) % 64,
}
_KEEPING = "row_mask:0xf bank_mask:0xf"
_ZEROING = f"{_KEEPING} bound_ctrl:0"
_MASKED = ["row_mask:0xa bank_mask:0xf", "row_mask:0xf bank_mask:0x5 bound_ctrl:0"]
_MOVES = [
    (control, rest) for control in _CONTROLS for rest in (_KEEPING, _ZEROING, *_MASKED)
]  # fmt: skip


def _real(a: int) -> exact.Real:
    return exact.decode(a, F32)


def _float(name: str) -> Callable[[int, int], int]:
    return lambda a, b: exact.encode(FLOAT_BINARY[name](_real(a), _real(b)), F32)


def _line(name: str) -> str:
    unary = name in ("v_mov_b32", "v_not_b32")
    return f"{name}_dpp v10, v1{'' if unary else ', v2'} quad_perm:[1,0,3,2] {_KEEPING}"


_NEGATED = f"v_add_f32_dpp v10, -v1, |v2| row_mirror {_ZEROING}"
_IN_PLACE = f"v_add_u32_dpp v1, v1, v1 row_mirror {_ZEROING}"
BENCH = Bench(
    [f"v_mov_b32_dpp v10, v1 {control} {rest}" for control, rest in _MOVES]
    + [_line(name) for name in OPCODES]
    + [_NEGATED, _IN_PLACE]
)
TESTED = BENCH.names


@pytest.mark.parametrize("exec_mask", MASKS)
@pytest.mark.parametrize(("control", "rest"), _MOVES)
def test_move(control: str, rest: str, exec_mask: int) -> None:
    wave, on = make_wave(exec_mask), active(exec_mask)
    set_vector(wave, 1, list(range(1000, 1000 + TOTAL)))
    set_vector(wave, 10, [7] * TOTAL)
    BENCH.run(f"v_mov_b32_dpp v10, v1 {control} {rest}", wave)
    for lane, value in enumerate(get_vector(wave, 10)):
        i = lane % LANES
        masked = "row_mask:0xa" in rest and i // 16 % 2 == 0
        masked |= "bank_mask:0x5" in rest and i // 4 % 2 == 1
        source = _CONTROLS[control](i)
        wanted = 7
        if on[lane] and not masked:
            if source is not None and on[source]:
                wanted = 1000 + lane - i + source
            elif "bound_ctrl" in rest:
                wanted = 0
        assert value == wanted, (lane, value, wanted)


@pytest.mark.parametrize("name", OPCODES)
def test_operation(name: str) -> None:
    """S0 comes from the neighbour, S1 and the old D from the lane itself."""
    pool = EDGE_F32 if name.endswith("f32") else EDGE_U32
    a = [pool[i % len(pool)] for i in range(TOTAL)]
    b = [pool[(i * 5 + 3) % len(pool)] for i in range(TOTAL)]
    c = [pool[(i * 3 + 1) % len(pool)] for i in range(TOTAL)]
    wave = make_wave()
    for register, values in ((1, a), (2, b), (10, c)):
        set_vector(wave, register, values)
    BENCH.run(_line(name), wave)
    for lane, value in enumerate(get_vector(wave, 10)):
        x, y, old = a[lane ^ 1], b[lane], c[lane]
        if name == "v_fmac_f32":
            product = exact.multiply(_real(x), _real(y))
            wanted = exact.encode(exact.add(product, _real(old)), F32)
        elif name in FLOAT_BINARY:
            wanted = _float(name)(x, y)
        elif name in INTEGER_BINARY:
            wanted = INTEGER_BINARY[name](x, y) & M32
        else:
            wanted = {"v_mov_b32": x, "v_not_b32": x ^ M32}[name]
        if name.endswith("f32"):
            assert exact.same_float(value, wanted, F32), (hex(x), hex(y), hex(value))
        else:
            assert value == wanted


def test_modifiers() -> None:
    wave = make_wave()
    set_vector(wave, 1, [exact.encode(exact.from_fraction(exact.Fraction(i)), F32)
                         for i in range(TOTAL)])  # fmt: skip
    set_vector(wave, 2, [0xBF80_0000] * TOTAL)
    BENCH.run(_NEGATED, wave)
    got = [_real(x).value for x in get_vector(wave, 10)]
    assert got == [1 - (i ^ 15) for i in range(TOTAL)]


def test_a_register_that_is_source_and_destination() -> None:
    wave = make_wave()
    set_vector(wave, 1, list(range(TOTAL)))
    BENCH.run(_IN_PLACE, wave)
    assert get_vector(wave, 1) == [i + (i ^ 15) for i in range(TOTAL)]
