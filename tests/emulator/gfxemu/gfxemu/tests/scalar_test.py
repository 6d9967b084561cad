# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Scalar ALU against Python integers, with values that agree and that differ between workgroups."""

from __future__ import annotations

import numpy as np
import pytest

from gfxemu.tests.bench import Bench, make_wave
from gfxemu.tests.exact import EDGE_U32, EDGE_U64, M32, M64, signed
from gfxemu.wave import DIVERGED, EXEC, VCC, Wave

# Each entry: function of (a, b, scc) -> (result, scc), scc None where unchanged.


def _overflow(r: int) -> int:
    return int(not -(1 << 31) <= r < 1 << 31)


def _logic(f, mask=M32):
    return lambda a, b, c: ((f(a, b) & mask), int(f(a, b) & mask != 0))


def _plain(f, mask=M32):
    return lambda a, b, c: (f(a, b) & mask, None)


def _bfe(a: int, b: int) -> int:
    offset, width = b % 32, (b >> 16) % 128
    return (a >> offset) % (1 << width)


def _bfe_i(a: int, b: int) -> int:
    width = (b >> 16) % 128
    field = _bfe(a, b)
    if 0 < width <= 32 and field & (1 << (width - 1)):
        field -= 1 << width
    return field


def _take(a: int, b: int, first: bool) -> tuple[int, int]:
    return (a if first else b), int(first)


_S32 = {
    "s_and_b32": _logic(lambda a, b: a & b),
    "s_or_b32": _logic(lambda a, b: a | b),
    "s_xor_b32": _logic(lambda a, b: a ^ b),
    "s_andn2_b32": _logic(lambda a, b: a & ~b),
    "s_orn2_b32": _logic(lambda a, b: a | ~b),
    "s_nand_b32": _logic(lambda a, b: ~(a & b)),
    "s_nor_b32": _logic(lambda a, b: ~(a | b)),
    "s_xnor_b32": _logic(lambda a, b: ~(a ^ b)),
    "s_lshl_b32": _logic(lambda a, b: a * 2 ** (b % 32)),
    "s_lshr_b32": _logic(lambda a, b: a // 2 ** (b % 32)),
    "s_ashr_i32": _logic(lambda a, b: signed(a, 32) // 2 ** (b % 32)),
    "s_bfe_u32": _logic(_bfe),
    "s_bfe_i32": _logic(_bfe_i),
    "s_mul_i32": _plain(lambda a, b: a * b),
    "s_mul_hi_u32": _plain(lambda a, b: (a * b) // 2**32),
    "s_mul_hi_i32": _plain(lambda a, b: (signed(a, 32) * signed(b, 32)) // 2**32),
    "s_pack_ll_b32_b16": _plain(lambda a, b: a % 65536 + (b % 65536) * 65536),
    "s_pack_lh_b32_b16": _plain(lambda a, b: a % 65536 + (b // 65536) * 65536),
    "s_pack_hh_b32_b16": _plain(lambda a, b: a // 65536 + (b // 65536) * 65536),
    "s_bfm_b32": _plain(lambda a, b: (2 ** (a % 32) - 1) * 2 ** (b % 32)),
    "s_add_u32": lambda a, b, c: ((a + b) & M32, int(a + b > M32)),
    "s_addc_u32": lambda a, b, c: ((a + b + c) & M32, int(a + b + c > M32)),
    "s_sub_u32": lambda a, b, c: ((a - b) & M32, int(a - b < 0)),
    "s_subb_u32": lambda a, b, c: ((a - b - c) & M32, int(a - b - c < 0)),
    "s_add_i32": lambda a, b, c: ((a + b) & M32, _overflow(signed(a, 32) + signed(b, 32))),
    "s_sub_i32": lambda a, b, c: ((a - b) & M32, _overflow(signed(a, 32) - signed(b, 32))),
    "s_absdiff_i32": _logic(lambda a, b: abs(signed(a, 32) - signed(b, 32))),
    "s_min_i32": lambda a, b, c: _take(a, b, signed(a, 32) < signed(b, 32)),
    "s_max_i32": lambda a, b, c: _take(a, b, signed(a, 32) > signed(b, 32)),
    "s_min_u32": lambda a, b, c: _take(a, b, a < b),
    "s_max_u32": lambda a, b, c: _take(a, b, a > b),
    **{
        f"s_lshl{n}_add_u32": lambda a, b, c, n=n: (
            (a * 2**n + b) & M32,
            int((a * 2**n + b) > M32),
        )
        for n in (1, 2, 3, 4)
    },
    "s_cselect_b32": lambda a, b, c: (a if c else b, None),
}
_S64 = {
    "s_and_b64": _logic(lambda a, b: a & b, M64),
    "s_or_b64": _logic(lambda a, b: a | b, M64),
    "s_xor_b64": _logic(lambda a, b: a ^ b, M64),
    "s_andn2_b64": _logic(lambda a, b: a & ~b, M64),
    "s_orn2_b64": _logic(lambda a, b: a | ~b, M64),
    "s_nand_b64": _logic(lambda a, b: ~(a & b), M64),
    "s_nor_b64": _logic(lambda a, b: ~(a | b), M64),
    "s_xnor_b64": _logic(lambda a, b: ~(a ^ b), M64),
    "s_cselect_b64": lambda a, b, c: (a if c else b, None),
}
_SHIFT64 = {
    "s_lshl_b64": _logic(lambda a, b: a << b % 64, M64),
    "s_lshr_b64": _logic(lambda a, b: a >> b % 64, M64),
    "s_ashr_i64": _logic(lambda a, b: signed(a, 64) >> b % 64, M64),
}


def _lowest_bit(a: int) -> int:
    return next((i for i in range(64) if a >> i & 1), -1)


_U32 = {
    "s_mov_b32": lambda a: (a, None),
    "s_not_b32": lambda a: (~a & M32, int(~a & M32 != 0)),
    "s_abs_i32": lambda a: (abs(signed(a, 32)), int(a != 0)),
    "s_brev_b32": lambda a: (sum((a >> i & 1) << (31 - i) for i in range(32)), None),
    "s_sext_i32_i8": lambda a: (signed(a, 8) & M32, None),
    "s_sext_i32_i16": lambda a: (signed(a, 16) & M32, None),
    "s_bcnt1_i32_b32": lambda a: (bin(a).count("1"), int(a != 0)),
    "s_ff1_i32_b32": lambda a: (_lowest_bit(a) & M32, None),
    "s_flbit_i32_b32": lambda a: (
        next((i for i in range(32) if a >> (31 - i) & 1), -1) & M32,
        None,
    ),
}
_U64 = {
    "s_mov_b64": (lambda a: (a, None), 64),
    "s_not_b64": (lambda a: (~a & M64, int(~a & M64 != 0)), 64),
    "s_bcnt1_i32_b64": (lambda a: (bin(a).count("1"), int(a != 0)), 32),
    "s_ff1_i32_b64": (lambda a: (_lowest_bit(a) & M32, None), 32),
}
_RELATION = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}
_COMPARES = [f"s_cmp_{r}_{t}" for r in _RELATION for t in ("i32", "u32")]
_COMPARES_K = [f"s_cmpk_{r}_{t}" for r in _RELATION for t in ("i32", "u32")]
_K = (0, 1, -1, 32767, -32768, 100)
_SAVE = {
    "s_and_saveexec_b64": lambda s, e: s & e,
    "s_or_saveexec_b64": lambda s, e: s | e,
    "s_xor_saveexec_b64": lambda s, e: s ^ e,
    "s_andn2_saveexec_b64": lambda s, e: s & ~e,
}

BENCH = Bench(
    [f"{n} s10, s2, s4" for n in _S32]
    + [f"{n} s[10:11], s[2:3], s[4:5]" for n in _S64]
    + [f"{n} s[10:11], s[2:3], s4" for n in _SHIFT64]
    + [f"{n} s10, s2" for n in _U32]
    + [f"{n} {'s[10:11]' if w == 64 else 's10'}, s[2:3]" for n, (_, w) in _U64.items()]
    + [f"{n} s2, s4" for n in _COMPARES]
    + [f"{n} s2, {k & 0xFFFF:#x}" for n in _COMPARES_K for k in _K]
    + [f"{n} s[2:3], s[4:5]" for n in ("s_cmp_eq_u64", "s_cmp_lg_u64")]
    + [f"{n} s2, s4" for n in ("s_bitcmp0_b32", "s_bitcmp1_b32")]
    + [f"{n} s10, s4" for n in ("s_bitset0_b32", "s_bitset1_b32")]
    + [f"{n} s10, {k & 0xFFFF:#x}" for n in ("s_movk_i32", "s_addk_i32", "s_mulk_i32") for k in _K]
    + ["s_cmov_b32 s10, s2", "s_cmov_b64 s[10:11], s[2:3]"]
    + [f"{n} s[10:11], s[2:3]" for n in _SAVE]
    + ["s_and_b64 s[10:11], s[2:3], exec", "s_or_b64 exec, exec, s[2:3]", "s_mov_b64 exec, -1",
       "s_and_b64 vcc, exec, vcc", "s_mov_b32 s10, 1.0", "s_mov_b32 s10, 0xdeadbeef",
       "s_add_u32 s10, s2, -16", "s_mov_b32 exec_lo, s2", "s_mov_b32 exec_hi, s2",
       "s_mov_b32 vcc_lo, s2", "s_lshr_b32 s10, vcc_hi, s4"]
)  # fmt: skip
TESTED = BENCH.names


def _set(wave: Wave, register: int, values: list[int], wide: bool = False) -> None:
    """`values` has one entry per workgroup."""
    value = values[0] if values[0] == values[1] else np.array(values, np.uint64)
    (wave.write64 if wide else wave.write32)(register, value)


def _get(wave: Wave, register: int, wide: bool = False) -> list[int]:
    value = wave.read64(register) if wide else wave.read32(register)
    return [value] * 2 if type(value) is int else value.tolist()


def _scc(wave: Wave) -> list[int]:
    scc = wave.scc
    return [scc] * 2 if type(scc) is int else [int(x) for x in scc]


def _pairs(a: list[int], b: list[int]):
    """Operands of two workgroups: the same, then different ones."""
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            yield [x, x], [y, y]
            if (i + j) % 3 == 0:
                yield [x, a[(i + 1) % len(a)]], [y, b[(j + 2) % len(b)]]


def _check_binary(line: str, expected, a_pool, b_pool, wide_a: bool, wide_b: bool, wide_d: bool):
    for scc in (0, 1):
        for a, b in _pairs(a_pool, b_pool):
            wave = make_wave()
            _set(wave, 2, a, wide_a)
            _set(wave, 4, b, wide_b)
            wave.scc = scc
            BENCH.run(line, wave)
            wanted = [expected(x, y, scc) for x, y in zip(a, b, strict=True)]
            assert _get(wave, 10, wide_d) == [w[0] for w in wanted], (line, a, b, scc)
            assert _scc(wave) == [scc if w[1] is None else w[1] for w in wanted], (line, a, b, scc)
        if "addc" not in line and "subb" not in line and "select" not in line:
            break


@pytest.mark.parametrize("name", _S32)
def test_binary_32(name: str) -> None:
    _check_binary(f"{name} s10, s2, s4", _S32[name], EDGE_U32[::2], [*EDGE_U32[1::2], 31, 32],
                  False, False, False)  # fmt: skip


@pytest.mark.parametrize("name", _S64)
def test_binary_64(name: str) -> None:
    line = f"{name} s[10:11], s[2:3], s[4:5]"
    _check_binary(line, _S64[name], EDGE_U64, EDGE_U64, True, True, True)


@pytest.mark.parametrize("name", _SHIFT64)
def test_shift_64(name: str) -> None:
    line = f"{name} s[10:11], s[2:3], s4"
    _check_binary(line, _SHIFT64[name], EDGE_U64, [0, 1, 31, 32, 63, 64, 65], True, False, True)


@pytest.mark.parametrize("name", [*_U32, *_U64])
def test_unary(name: str) -> None:
    wide = name in _U64
    function, result_bits = _U64[name] if wide else (_U32[name], 32)
    pool = EDGE_U64 if wide else EDGE_U32
    to = "s[10:11]" if result_bits == 64 else "s10"
    line = f"{name} {to}, {'s[2:3]' if wide else 's2'}"
    for i, x in enumerate(pool):
        for a in ([x, x], [x, pool[(i + 1) % len(pool)]]):
            wave = make_wave()
            _set(wave, 2, a, wide)
            wave.scc = 1
            BENCH.run(line, wave)
            wanted = [function(v) for v in a]
            assert _get(wave, 10, result_bits == 64) == [w[0] for w in wanted], (line, a)
            assert _scc(wave) == [1 if w[1] is None else w[1] for w in wanted]


@pytest.mark.parametrize("name", _COMPARES)
def test_compare(name: str) -> None:
    _, _, relation, kind = name.split("_")
    view = (lambda x: signed(x, 32)) if kind == "i32" else (lambda x: x)
    for a, b in _pairs(EDGE_U32, EDGE_U32[::3]):
        wave = make_wave()
        _set(wave, 2, a)
        _set(wave, 4, b)
        BENCH.run(f"{name} s2, s4", wave)
        wanted = [int(_RELATION[relation](view(x), view(y))) for x, y in zip(a, b, strict=True)]
        assert _scc(wave) == wanted, (name, a, b)


@pytest.mark.parametrize("name", _COMPARES_K)
def test_compare_constant(name: str) -> None:
    _, _, relation, kind = name.split("_")
    for k in _K:
        b = k if kind == "i32" else k & 0xFFFF
        for x in EDGE_U32:
            a = signed(x, 32) if kind == "i32" else x
            wave = make_wave()
            _set(wave, 2, [x, x])
            BENCH.run(f"{name} s2, {k & 0xFFFF:#x}", wave)
            assert _scc(wave)[0] == int(_RELATION[relation](a, b)), (name, x, k)


@pytest.mark.parametrize("name", ["s_cmp_eq_u64", "s_cmp_lg_u64"])
def test_compare_64(name: str) -> None:
    for a, b in _pairs(EDGE_U64, EDGE_U64):
        wave = make_wave()
        _set(wave, 2, a, True)
        _set(wave, 4, b, True)
        BENCH.run(f"{name} s[2:3], s[4:5]", wave)
        equal = [int(x == y) for x, y in zip(a, b, strict=True)]
        assert _scc(wave) == (equal if "eq" in name else [1 - e for e in equal])


def test_bits() -> None:
    for a, b in _pairs(EDGE_U32, [0, 1, 31, 32, 63]):
        for value in (0, 1):
            wave = make_wave()
            _set(wave, 2, a)
            _set(wave, 4, b)
            BENCH.run(f"s_bitcmp{value}_b32 s2, s4", wave)
            assert _scc(wave) == [
                int((x >> y % 32) % 2 == value) for x, y in zip(a, b, strict=True)
            ]
            _set(wave, 10, a)
            BENCH.run(f"s_bitset{value}_b32 s10, s4", wave)
            wanted = [
                x | 1 << y % 32 if value else x & ~(1 << y % 32) for x, y in zip(a, b, strict=True)
            ]
            assert _get(wave, 10) == wanted


@pytest.mark.parametrize("k", _K)
def test_immediate(k: int) -> None:
    for x in EDGE_U32:
        for a in ([x, x], [x, x ^ 5]):
            wave = make_wave()
            BENCH.run(f"s_movk_i32 s10, {k & 0xFFFF:#x}", wave)
            assert _get(wave, 10) == [k & M32] * 2
            _set(wave, 10, a)
            BENCH.run(f"s_addk_i32 s10, {k & 0xFFFF:#x}", wave)
            assert _get(wave, 10) == [(v + k) & M32 for v in a]
            assert _scc(wave) == [_overflow(signed(v, 32) + k) for v in a]
            _set(wave, 10, a)
            BENCH.run(f"s_mulk_i32 s10, {k & 0xFFFF:#x}", wave)
            assert _get(wave, 10) == [(v * k) & M32 for v in a]


def test_conditional_move() -> None:
    for scc in (0, 1, np.array([True, False])):
        wave = make_wave()
        wave.write64(2, 0x1111_2222_3333_4444)
        wave.write64(10, 0x5555_6666_7777_8888)
        wave.scc = scc
        BENCH.run("s_cmov_b32 s10, s2", wave)
        set_ = [int(scc)] * 2 if type(scc) is int else [1, 0]
        assert _get(wave, 10) == [0x3333_4444 if c else 0x7777_8888 for c in set_]
        BENCH.run("s_cmov_b64 s[10:11], s[2:3]", wave)
        assert _get(wave, 11) == [0x1111_2222 if c else 0x5555_6666 for c in set_]


@pytest.mark.parametrize("name", _SAVE)
def test_save_exec(name: str) -> None:
    for a in EDGE_U64:
        for old in EDGE_U64:
            wave = make_wave(old)
            wave.write64(2, a)
            BENCH.run(f"{name} s[10:11], s[2:3]", wave)
            wanted = _SAVE[name](a, old) & M64
            assert _get(wave, 10, True) == [old] * 2
            assert _get(wave, EXEC, True) == [wanted] * 2
            assert _scc(wave) == [int(wanted != 0)] * 2
            assert wave.lanes.tolist() == [[bool(wanted >> i & 1) for i in range(64)]] * 2
            assert wave.all_lanes == (wanted == M64)


def test_masks_and_numbers_mix() -> None:
    """A register pair written as a lane mask reads as a number, and the other way round."""
    wave = make_wave(0xFF00)
    wave.write64(2, 0x0FF0)
    BENCH.run("s_and_b64 s[10:11], s[2:3], exec", wave)
    assert _get(wave, 10, True) == [0x0F00] * 2 and _scc(wave) == [1, 1]
    BENCH.run("s_or_b64 exec, exec, s[2:3]", wave)
    assert _get(wave, EXEC, True) == [0xFFF0] * 2
    wave.write64(VCC, 0x8000_0000_0000_0010)
    BENCH.run("s_and_b64 vcc, exec, vcc", wave)
    assert _get(wave, VCC, True) == [0x10] * 2
    wave.write32(2, 7)
    BENCH.run("s_mov_b32 vcc_lo, s2", wave)
    assert _get(wave, VCC, True) == [7] * 2
    BENCH.run("s_mov_b64 exec, -1", wave)
    assert wave.all_lanes
    BENCH.run("s_mov_b32 exec_hi, s2", wave)
    assert _get(wave, EXEC, True) == [7 << 32 | M32] * 2
    BENCH.run("s_mov_b32 exec_lo, s2", wave)
    assert _get(wave, EXEC, True) == [7 << 32 | 7] * 2
    wave.write64(VCC, 0x80 << 32)
    wave.write32(4, 3)
    BENCH.run("s_lshr_b32 s10, vcc_hi, s4", wave)
    assert _get(wave, 10) == [0x10] * 2


def test_constants() -> None:
    wave = make_wave()
    BENCH.run("s_mov_b32 s10, 1.0", wave)
    assert _get(wave, 10) == [0x3F80_0000] * 2
    BENCH.run("s_mov_b32 s10, 0xdeadbeef", wave)
    assert _get(wave, 10) == [0xDEAD_BEEF] * 2
    wave.write32(2, 16)
    BENCH.run("s_add_u32 s10, s2, -16", wave)
    assert _get(wave, 10) == [0] * 2 and _scc(wave) == [1, 1]


def test_decide() -> None:
    """Branches that workgroups agree on jump or continue; others ask for a split."""
    wave = make_wave()
    assert wave.decide(1, 5, 0) == 5 and wave.decide(0, 5, 0) is None
    assert wave.decide(np.array([True, True]), 5, 0) == 5
    assert wave.decide(np.array([False, False]), 5, 0) is None
    assert wave.decide(np.array([True, False]), 5, 0) == DIVERGED
