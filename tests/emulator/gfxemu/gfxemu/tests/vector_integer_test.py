# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Integer vector ALU against Python integers, under full and partial EXEC."""

from __future__ import annotations

import pytest

from gfxemu.tests.bench import (
    MASKS,
    TOTAL,
    Bench,
    VectorCase,
    active,
    check_vector,
    combinations,
    get_mask,
    get_vector,
    make_wave,
    set_vector,
)
from gfxemu.tests.exact import EDGE_F16, EDGE_U32, EDGE_U64, M32, M64, signed
from gfxemu.wave import VCC


def s32(x: int) -> int:
    return signed(x, 32)


def _leading_zeros(a: int) -> int:
    return next((i for i in range(32) if a >> (31 - i) & 1), M32)


_UNARY = {
    "v_mov_b32": lambda a: a,
    "v_not_b32": lambda a: a ^ M32,
    "v_bfrev_b32": lambda a: int(format(a, "032b")[::-1], 2),
    "v_ffbh_u32": _leading_zeros,
    "v_ffbl_b32": lambda a: next((i for i in range(32) if a >> i & 1), M32),
}
_BINARY = {
    "v_add_u32": lambda a, b: a + b,
    "v_sub_u32": lambda a, b: a - b,
    "v_subrev_u32": lambda a, b: b - a,
    "v_add_i32": lambda a, b: s32(a) + s32(b),
    "v_sub_i32": lambda a, b: s32(a) - s32(b),
    "v_and_b32": lambda a, b: a & b,
    "v_or_b32": lambda a, b: a | b,
    "v_xor_b32": lambda a, b: a ^ b,
    "v_xnor_b32": lambda a, b: ~(a ^ b),
    "v_lshlrev_b32": lambda a, b: b * 2 ** (a % 32),
    "v_lshrrev_b32": lambda a, b: b // 2 ** (a % 32),
    "v_ashrrev_i32": lambda a, b: s32(b) // 2 ** (a % 32),
    "v_mul_lo_u32": lambda a, b: a * b,
    "v_mul_hi_u32": lambda a, b: a * b // 2**32,
    "v_mul_hi_i32": lambda a, b: s32(a) * s32(b) // 2**32,
    "v_mul_u32_u24": lambda a, b: (a % 2**24) * (b % 2**24),
    "v_mul_i32_i24": lambda a, b: signed(a, 24) * signed(b, 24),
    "v_min_i32": lambda a, b: min(s32(a), s32(b)),
    "v_max_i32": lambda a, b: max(s32(a), s32(b)),
    "v_min_u32": min,
    "v_max_u32": max,
    "v_bcnt_u32_b32": lambda a, b: bin(a).count("1") + b,
    "v_bfm_b32": lambda a, b: (2 ** (a % 32) - 1) * 2 ** (b % 32),
    "v_add_u16": lambda a, b: (a + b) % 65536,
    "v_sub_u16": lambda a, b: (a - b) % 65536,
    "v_subrev_u16": lambda a, b: (b - a) % 65536,
    "v_mul_lo_u16": lambda a, b: (a * b) % 65536,
    "v_lshlrev_b16": lambda a, b: b * 2 ** (a % 16) % 65536,
    "v_lshrrev_b16": lambda a, b: b % 65536 // 2 ** (a % 16),
    "v_ashrrev_i16": lambda a, b: (signed(b, 16) // 2 ** (a % 16)) % 65536,
    "v_min_u16": lambda a, b: min(a % 65536, b % 65536),
    "v_max_u16": lambda a, b: max(a % 65536, b % 65536),
    "v_min_i16": lambda a, b: min(signed(a, 16), signed(b, 16)) % 65536,
    "v_max_i16": lambda a, b: max(signed(a, 16), signed(b, 16)) % 65536,
}


def _bfe_u(a: int, b: int, c: int) -> int:
    return (a >> b % 32) % 2 ** (c % 32)


def _bfe_i(a: int, b: int, c: int) -> int:
    width = c % 32
    if not width:
        return 0
    # An arithmetic shift: a field that runs past bit 31 sees copies of it.
    return signed(s32(a) >> b % 32, width)


def _perm(a: int, b: int, selector: int) -> int:
    data = (a << 32 | b).to_bytes(8, "little")
    out = 0
    for i, s in enumerate(selector.to_bytes(4, "little")):
        if s < 8:
            byte = data[s]
        elif s < 12:
            byte = 255 if data[2 * (s - 8) + 1] & 0x80 else 0
        else:
            byte = 0 if s == 12 else 255
        out |= byte << 8 * i
    return out


def _sad16(a: int, b: int, c: int) -> int:
    return abs(a % 65536 - b % 65536) + abs(a // 65536 - b // 65536) + c


_TERNARY = {
    "v_add3_u32": lambda a, b, c: a + b + c,
    "v_lshl_add_u32": lambda a, b, c: a * 2 ** (b % 32) + c,
    "v_add_lshl_u32": lambda a, b, c: (a + b) * 2 ** (c % 32),
    "v_lshl_or_b32": lambda a, b, c: a * 2 ** (b % 32) | c,
    "v_and_or_b32": lambda a, b, c: (a & b) | c,
    "v_or3_b32": lambda a, b, c: a | b | c,
    "v_xad_u32": lambda a, b, c: (a ^ b) + c,
    "v_bfi_b32": lambda a, b, c: (a & b) | (~a & c),
    "v_bfe_u32": _bfe_u,
    "v_bfe_i32": _bfe_i,
    "v_perm_b32": _perm,
    "v_alignbit_b32": lambda a, b, c: (a << 32 | b) >> c % 32,
    "v_alignbyte_b32": lambda a, b, c: (a << 32 | b) >> 8 * (c % 4),
    "v_mad_u32_u24": lambda a, b, c: (a % 2**24) * (b % 2**24) + c,
    "v_mad_i32_i24": lambda a, b, c: signed(a, 24) * signed(b, 24) + s32(c),
    "v_mad_legacy_u16": lambda a, b, c: ((a % 65536) * (b % 65536) + c) % 65536,
    "v_mad_u32_u16": lambda a, b, c: (a % 65536) * (b % 65536) + c,
    "v_sad_u16": _sad16,
    "v_sad_u32": lambda a, b, c: abs(a - b) + c,
    "v_min3_u32": min,
    "v_max3_u32": max,
    "v_min3_i32": lambda *x: min(map(s32, x)),
    "v_max3_i32": lambda *x: max(map(s32, x)),
    "v_med3_u32": lambda *x: sorted(x)[1],
    "v_med3_i32": lambda *x: sorted(map(s32, x))[1],
}
_SELECTORS = [
    0x07060302,
    0x05040100,
    0x03020706,
    0x0C0C0C0C,
    0x0B0A0908,
    0x0D0CFF03,
    0x00010203,
    0x07000500,
    0x05040706,
    0x01000504,
    0x0302000D,
    0x0908070C,
]


def _bitop3(table: int, bits: int):
    def f(a: int, b: int, c: int) -> int:
        out = 0
        for i in range(bits):
            row = (a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)
            out |= (table >> row & 1) << i
        return out

    return f


_BITOP3 = [0x00, 0xFF, 0x96, 0xE8, 0x48, 0xCA, 0x01, 0x80, 0x6C]


def _low32(f):
    return lambda *x: f(*x) & M32


def _case(line: str, function, *pools, **more) -> VectorCase:
    sources = tuple((1 + i, 32, pool) for i, pool in enumerate(pools))
    return VectorCase(line, sources, _low32(function), **more)


_SMALL = [*EDGE_U32[::3], 32, 33, 31]
_CASES = [
    *(_case(f"{n} v10, v1", f, EDGE_U32) for n, f in _UNARY.items()),
    *(_case(f"{n} v10, v1, v2", f, EDGE_U32, EDGE_U32) for n, f in _BINARY.items()),
    *(
        _case(f"{n} v10, v1, v2, v3", f, _SMALL, _SMALL, _SELECTORS if "perm" in n else _SMALL)
        for n, f in _TERNARY.items()
    ),
    # Constant selectors take a path of their own.
    *(
        _case(
            f"v_perm_b32 v10, v1, v2, s{20 + i}",
            lambda a, b, s=s: _perm(a, b, s),
            EDGE_U32,
            EDGE_U32,
        )
        for i, s in enumerate(_SELECTORS)
    ),
    # Constants, scalar registers, AccVGPRs, the destination as a source.
    _case("v_add_u32 v10, 64, v2", lambda a, b: 64 + b, [0], EDGE_U32),
    _case("v_add_u32 v10, 0x12345678, v2", lambda a, b: 0x12345678 + b, [0], EDGE_U32),
    _case("v_mul_lo_u32 v10, s12, v2", lambda a, b: 0x80000003 * b, [0], EDGE_U32),
    _case("v_mov_b32 v10, 1.0", lambda a: 0x3F800000, [0]),
    _case("v_mov_b32 v10, -16", lambda a: -16, [0]),
    VectorCase("v_accvgpr_read_b32 v10, a3", ((259, 32, EDGE_U32),), lambda a: a),
    VectorCase("v_accvgpr_write_b32 a10, v1", ((1, 32, EDGE_U32),), lambda a: a, destination=266),
    VectorCase("v_accvgpr_mov_b32 a10, a3", ((259, 32, EDGE_U32),), lambda a: a, destination=266),
    VectorCase(
        "v_pack_b32_f16 v10, v1, v2",
        ((1, 32, EDGE_U32), (2, 32, EDGE_F16)),
        lambda a, b: a % 65536 | (b << 16) & M32,
    ),
    VectorCase(
        "v_pack_b32_f16 v10, v1, v2 op_sel:[1,0,0]",
        ((1, 32, EDGE_U32), (2, 32, EDGE_F16)),
        lambda a, b: a >> 16 | (b << 16) & M32,
    ),
    VectorCase(
        "v_pack_b32_f16 v10, -v1, |v2|",
        ((1, 32, EDGE_U32), (2, 32, EDGE_F16)),
        lambda a, b: (a % 65536 ^ 0x8000) | (b & 0x7FFF) << 16,
    ),
    # 64-bit results.
    VectorCase(
        "v_lshlrev_b64 v[10:11], v1, v[2:3]",
        ((1, 32, [0, 1, 31, 32, 33, 63, 64, 65]), (2, 64, EDGE_U64)),
        lambda a, b: (b << a % 64) & M64,
        bits=64,
    ),
    VectorCase(
        "v_lshrrev_b64 v[10:11], v1, v[2:3]",
        ((1, 32, [0, 1, 31, 32, 33, 63, 64, 65]), (2, 64, EDGE_U64)),
        lambda a, b: b >> a % 64,
        bits=64,
    ),
    VectorCase(
        "v_ashrrev_i64 v[10:11], v1, v[2:3]",
        ((1, 32, [0, 1, 31, 32, 33, 63, 64, 65]), (2, 64, EDGE_U64)),
        lambda a, b: (signed(b, 64) >> a % 64) & M64,
        bits=64,
    ),
    VectorCase("v_mov_b64 v[10:11], v[2:3]", ((2, 64, EDGE_U64),), lambda a: a, bits=64),
    VectorCase("v_mov_b64 v[10:11], -1", ((2, 64, EDGE_U64),), lambda a: M64, bits=64),
    VectorCase(
        "v_lshl_add_u64 v[10:11], v[2:3], v1, v[4:5]",
        ((2, 64, EDGE_U64), (1, 32, [0, 1, 2, 3, 4]), (4, 64, EDGE_U64)),
        lambda a, b, c: ((a << b) + c) & M64,
        bits=64,
    ),
    VectorCase(
        "v_mad_u64_u32 v[10:11], s[40:41], v1, v2, v[4:5]",
        ((1, 32, EDGE_U32), (2, 32, EDGE_U32), (4, 64, EDGE_U64)),
        lambda a, b, c: (a * b + c) & M64,
        bits=64,
    ),
    VectorCase(
        "v_mad_i64_i32 v[10:11], s[40:41], v1, v2, v[4:5]",
        ((1, 32, EDGE_U32), (2, 32, EDGE_U32), (4, 64, EDGE_U64)),
        lambda a, b, c: (s32(a) * s32(b) + c) & M64,
        bits=64,
    ),
    VectorCase(
        "v_pk_mov_b32 v[10:11], v[2:3], v[4:5] op_sel:[1,0]",
        ((2, 64, EDGE_U64), (4, 64, EDGE_U64)),
        lambda a, b: a >> 32 | (b & M32) << 32,
        bits=64,
    ),
    VectorCase(
        "v_pk_mov_b32 v[10:11], v[2:3], v[4:5] op_sel:[0,1]",
        ((2, 64, EDGE_U64), (4, 64, EDGE_U64)),
        lambda a, b: a & M32 | b >> 32 << 32,
        bits=64,
    ),
    VectorCase(
        "v_pk_mov_b32 v[10:11], v[10:11], v[10:11] op_sel:[1,0]",
        (),
        lambda old: old >> 32 | (old & M32) << 32,
        bits=64,
        uses_old=True,
    ),
]
_CASES_950 = [
    _case(f"v_bitop3_b{bits} v10, v1, v2, v3 bitop3:{t:#x}", _bitop3(t, bits),
          _SMALL, _SMALL, _SMALL)
    for t in _BITOP3
    for bits in (16, 32)
]  # fmt: skip
_CARRIES = {
    "v_add_co_u32 v10, s[40:41], v1, v2": lambda a, b, c: a + b,
    "v_addc_co_u32 v10, s[40:41], v1, v2, s[42:43]": lambda a, b, c: a + b + c,
    "v_sub_co_u32 v10, s[40:41], v1, v2": lambda a, b, c: a - b,
    "v_subrev_co_u32 v10, s[40:41], v1, v2": lambda a, b, c: b - a,
    "v_subb_co_u32 v10, s[40:41], v1, v2, s[42:43]": lambda a, b, c: a - b - c,
    "v_subbrev_co_u32 v10, s[40:41], v1, v2, s[42:43]": lambda a, b, c: b - a - c,
}
_OTHER = [
    "v_cndmask_b32_e32 v10, v1, v2, vcc",
    "v_cndmask_b32_e64 v10, v1, -v2, s[42:43]",
    "v_mbcnt_lo_u32_b32 v10, v1, v2",
    "v_mbcnt_hi_u32_b32 v10, v1, v2",
]

BENCH = Bench([*(c.line for c in _CASES), *_CARRIES, *_OTHER])
BENCH_950 = Bench([c.line for c in _CASES_950], "gfx950")


def TESTED() -> set[str]:
    return BENCH.names() | BENCH_950.names()


@pytest.fixture(autouse=True)
def scalar_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """s12 and the selectors in s20.. hold what the cases above expect."""
    from gfxemu.tests import bench

    original = bench.make_wave

    def make(*args, **kwargs):
        wave = original(*args, **kwargs)
        wave.write32(12, 0x80000003)
        for i, selector in enumerate(_SELECTORS):
            wave.write32(20 + i, selector)
        return wave

    monkeypatch.setattr(bench, "make_wave", make)


@pytest.mark.parametrize("case", _CASES, ids=str)
def test_operation(case: VectorCase) -> None:
    check_vector(BENCH, case)


@pytest.mark.parametrize("case", _CASES_950, ids=str)
def test_operation_gfx950(case: VectorCase) -> None:
    check_vector(BENCH_950, case)


@pytest.mark.parametrize("line", _CARRIES)
def test_carry(line: str) -> None:
    tuples = combinations([EDGE_U32, EDGE_U32])
    for exec_mask in MASKS:
        wave = make_wave(exec_mask)
        chunk = tuples[:TOTAL]
        carry_in = 0xA5A5_5A5A_0FF0_F00F
        set_vector(wave, 1, [t[0] for t in chunk])
        set_vector(wave, 2, [t[1] for t in chunk])
        wave.write64(42, carry_in)
        wave.write64(40, M64)
        set_vector(wave, 10, [77] * TOTAL)
        BENCH.run(line, wave)
        values, carries = get_vector(wave, 10), get_mask(wave, 40)
        for lane, on in enumerate(active(exec_mask)):
            total = _CARRIES[line](*chunk[lane], carry_in >> lane % 64 & 1)
            assert values[lane] == (total & M32 if on else 77)
            assert carries[lane] == int(on and not 0 <= total <= M32)


def test_mad_carry_out() -> None:
    wave = make_wave()
    tuples = [(M32, M32, c) for c in (0, 1, 0x1_FFFF_FFFE, 0x1_FFFF_FFFF, M64, 1 << 33)]
    tuples += [(0, 5, M64)] * (TOTAL - len(tuples))
    for register, bits, position in ((1, 32, 0), (2, 32, 1), (4, 64, 2)):
        set_vector(wave, register, [t[position] for t in tuples], bits)
    BENCH.run("v_mad_u64_u32 v[10:11], s[40:41], v1, v2, v[4:5]", wave)
    assert get_mask(wave, 40) == [int(a * b + c > M64) for a, b, c in tuples]


@pytest.mark.parametrize("exec_mask", MASKS)
def test_select(exec_mask: int) -> None:
    wave = make_wave(exec_mask)
    a = [(i * 0x01010101) & M32 for i in range(TOTAL)]
    b = [(~i * 0x00110011) & M32 for i in range(TOTAL)]
    choice = 0x0F0F_1234_8765_FFFF
    set_vector(wave, 1, a)
    set_vector(wave, 2, b)
    wave.write64(VCC, choice)
    wave.write64(42, choice)
    for line, flip in (
        ("v_cndmask_b32_e32 v10, v1, v2, vcc", 0),
        ("v_cndmask_b32_e64 v10, v1, -v2, s[42:43]", 1 << 31),
    ):
        set_vector(wave, 10, [99] * TOTAL)
        BENCH.run(line, wave)
        for lane, value in enumerate(get_vector(wave, 10)):
            wanted = b[lane] ^ flip if choice >> lane % 64 & 1 else a[lane]
            assert value == (wanted if exec_mask >> lane % 64 & 1 else 99)


def test_masked_bit_count() -> None:
    for mask in EDGE_U32:
        wave = make_wave()
        set_vector(wave, 1, [mask] * TOTAL)
        set_vector(wave, 2, list(range(TOTAL)))
        for part, first in (("lo", 0), ("hi", 32)):
            BENCH.run(f"v_mbcnt_{part}_u32_b32 v10, v1, v2", wave)
            for lane, value in enumerate(get_vector(wave, 10)):
                below = [b for b in range(32) if mask >> b & 1 and first + b < lane % 64]
                assert value == len(below) + lane
