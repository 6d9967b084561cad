# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Comparisons, lane reads and writes, permutations."""

from __future__ import annotations

import pytest

from gfxemu.tests import exact
from gfxemu.tests.bench import (
    LANES,
    MASKS,
    TOTAL,
    Bench,
    active,
    combinations,
    get_mask,
    get_vector,
    make_wave,
    set_vector,
)
from gfxemu.tests.exact import (
    EDGE_F16,
    EDGE_F32,
    EDGE_F64,
    EDGE_U32,
    EDGE_U64,
    F16,
    F32,
    F64,
    M32,
    signed,
)
from gfxemu.wave import EXEC, M0, VCC

_INTEGER = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "f": lambda a, b: False,
    "t": lambda a, b: True,
}
# The answers of each relation for less, equal, greater, unordered.
_FLOAT = {
    "eq": "=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lg": "<>", "o": "<=>", "u": "u",
    "neq": "<>u", "nlt": "=>u", "nle": ">u", "ngt": "<=u", "nge": "<u", "nlg": "=u",
    "f": "", "tru": "<=>u",
}  # fmt: skip
_BITS = {"u16": 16, "i16": 16, "u32": 32, "i32": 32, "u64": 64, "i64": 64}
_FORMS = {"f16": (F16, EDGE_F16), "f32": (F32, EDGE_F32), "f64": (F64, EDGE_F64)}


def _line(name: str) -> str:
    wide = name.endswith("64")
    second = "v4" if "class" in name or not wide else "v[4:5]"
    return f"{name}_e64 s[40:41], {'v[2:3]' if wide else 'v2'}, {second}"


_PREFIXES = ("v_cmp", "v_cmpx")
_INTEGER_NAMES = [f"{p}_{r}_{t}" for p in _PREFIXES for r in _INTEGER for t in _BITS]
_FLOAT_NAMES = [f"{p}_{r}_{t}" for p in _PREFIXES for r in _FLOAT for t in _FORMS]
_CLASS_NAMES = [f"{p}_class_{t}" for p in _PREFIXES for t in _FORMS]
_SWAPS = ["v_permlane32_swap_b32 v2, v4", "v_permlane16_swap_b32 v2, v4"]
BENCH = Bench(
    [_line(n) for n in [*_INTEGER_NAMES, *_FLOAT_NAMES, *_CLASS_NAMES]]
    + ["v_cmp_gt_i32_e32 vcc, s12, v4",
       "v_cmp_lt_f32_e64 s[40:41], |v2|, -v4", "v_readfirstlane_b32 s10, v2",
       "v_readlane_b32 s10, v2, s4", "v_readlane_b32 s10, v2, 63", "v_writelane_b32 v2, s10, m0",
       "v_writelane_b32 v2, 17, 5", "v_swap_b32 v2, v4"]
)  # fmt: skip
BENCH_950 = Bench(_SWAPS, "gfx950")


def TESTED() -> set[str]:
    return BENCH.names() | BENCH_950.names()


def _check(name: str, pool: list[int], bits: int, expected) -> None:
    tuples = combinations([pool, pool])
    for exec_mask in MASKS:
        for first in range(0, len(tuples), TOTAL):
            chunk = tuples[first : first + TOTAL]
            wave = make_wave(exec_mask)
            set_vector(wave, 2, [a for a, _ in chunk], max(bits, 32))
            set_vector(wave, 4, [b for _, b in chunk], max(bits, 32))
            wave.write64(40, 0xFFFF_FFFF_FFFF_FFFF)
            BENCH.run(_line(name), wave)
            result, enabled = get_mask(wave, 40), get_mask(wave, EXEC)
            for lane, on in enumerate(active(exec_mask)):
                wanted = int(on and expected(*chunk[lane]))
                assert result[lane] == wanted, (name, [hex(x) for x in chunk[lane]], lane)
                assert enabled[lane] == (wanted if "cmpx" in name else on)


@pytest.mark.parametrize("name", _INTEGER_NAMES)
def test_compare_integer(name: str) -> None:
    _, _, relation, kind = name.split("_")
    bits = _BITS[kind]

    def view(x: int) -> int:
        return signed(x, bits) if kind[0] == "i" else x % (1 << bits)

    pool = EDGE_U64 if bits == 64 else EDGE_U32
    _check(name, pool, bits, lambda a, b: _INTEGER[relation](view(a), view(b)))


@pytest.mark.parametrize("name", _FLOAT_NAMES)
def test_compare_float(name: str) -> None:
    _, _, relation, kind = name.split("_")
    form, pool = _FORMS[kind]

    def expected(a: int, b: int) -> bool:
        order = exact.compare(exact.decode(a, form), exact.decode(b, form))
        return {-1: "<", 0: "=", 1: ">", None: "u"}[order] in _FLOAT[relation]

    _check(name, pool, form.width, expected)


def test_compare_with_modifiers_and_scalars() -> None:
    wave = make_wave()
    set_vector(wave, 2, [0xBF800000] * TOTAL)
    set_vector(wave, 4, [0xC0000000 if i % 2 else 0x40000000 for i in range(TOTAL)])
    BENCH.run("v_cmp_lt_f32_e64 s[40:41], |v2|, -v4", wave)
    assert get_mask(wave, 40) == [i % 2 for i in range(TOTAL)]
    wave.write32(12, 5)
    set_vector(wave, 4, list(range(TOTAL)))
    BENCH.run("v_cmp_gt_i32_e32 vcc, s12, v4", wave)
    assert get_mask(wave, VCC) == [int(i < 5) for i in range(TOTAL)]


# A member of each class, in the order of their bits: signalling and quiet NaN, negative infinity,
# normal, denormal and zero, then the positive ones from zero up.
_CLASSES = {
    "f16": [0x7C01, 0x7E00, 0xFC00, 0xBC00, 0x8001, 0x8000, 0x0000, 0x03FF, 0x3C00, 0x7C00],
    "f32": [0x7F800001, 0x7FC00000, 0xFF800000, 0xBF800000, 0x80000001, 0x80000000,
            0x00000000, 0x007FFFFF, 0x3F800000, 0x7F800000],
    "f64": [0x7FF0000000000001, 0x7FF8000000000000, 0xFFF0000000000000, 0xBFF0000000000000,
            0x8000000000000001, 0x8000000000000000, 0x0000000000000000, 0x000FFFFFFFFFFFFF,
            0x3FF0000000000000, 0x7FF0000000000000],
}  # fmt: skip


@pytest.mark.parametrize("exec_mask", MASKS)
@pytest.mark.parametrize("name", _CLASS_NAMES)
def test_class(name: str, exec_mask: int) -> None:
    kind = name.rpartition("_")[2]
    members, on = _CLASSES[kind], active(exec_mask)
    for wanted in range(10):
        wave = make_wave(exec_mask)
        bits = max(_FORMS[kind][0].width, 32)
        set_vector(wave, 2, [members[i % 10] for i in range(TOTAL)], bits)
        set_vector(wave, 4, [1 << wanted] * TOTAL)
        BENCH.run(_line(name), wave)
        result = [int(on[i] and i % 10 == wanted) for i in range(TOTAL)]
        assert get_mask(wave, 40) == result
        assert get_mask(wave, EXEC) == (result if "cmpx" in name else on)


@pytest.mark.parametrize("exec_mask", [*MASKS, 0, 1 << 63, 0x30])
def test_read_first_lane(exec_mask: int) -> None:
    wave = make_wave(exec_mask)
    set_vector(wave, 2, list(range(100, 100 + TOTAL)))
    BENCH.run("v_readfirstlane_b32 s10, v2", wave)
    lowest = next((i for i in range(LANES) if exec_mask >> i & 1), 0)
    assert wave.read32(10).tolist() == [100 + lowest, 100 + LANES + lowest]


def test_read_and_write_lane() -> None:
    for lane in (0, 1, 31, 32, 63, 64, 70):
        wave = make_wave(0)  # EXEC does not matter
        values = list(range(1000, 1000 + TOTAL))
        set_vector(wave, 2, values)
        wave.write32(4, lane)
        BENCH.run("v_readlane_b32 s10, v2, s4", wave)
        assert wave.read32(10).tolist() == [1000 + lane % 64, 1064 + lane % 64]
        wave.write32(10, 0xFFFF_FFFF)
        wave.write32(M0, lane)
        BENCH.run("v_writelane_b32 v2, s10, m0", wave)
        changed = [M32 if i % 64 == lane % 64 else v for i, v in enumerate(values)]
        assert get_vector(wave, 2) == changed
    BENCH.run("v_writelane_b32 v2, 17, 5", wave)
    assert get_vector(wave, 2)[5] == get_vector(wave, 2)[69] == 17
    BENCH.run("v_readlane_b32 s10, v2, 63", wave)
    assert wave.read32(10).tolist() == [1063, 1127]


@pytest.mark.parametrize("exec_mask", MASKS)
def test_swap(exec_mask: int) -> None:
    wave = make_wave(exec_mask)
    a, b = list(range(TOTAL)), list(range(500, 500 + TOTAL))
    set_vector(wave, 2, a)
    set_vector(wave, 4, b)
    BENCH.run("v_swap_b32 v2, v4", wave)
    on = active(exec_mask)
    assert get_vector(wave, 2) == [b[i] if on[i] else a[i] for i in range(TOTAL)]
    assert get_vector(wave, 4) == [a[i] if on[i] else b[i] for i in range(TOTAL)]


@pytest.mark.parametrize("half", [32, 16])
def test_permute_swap(half: int) -> None:
    """Odd rows of the first register change places with even rows of the second."""
    wave = make_wave()
    a, b = list(range(TOTAL)), list(range(500, 500 + TOTAL))
    set_vector(wave, 2, a)
    set_vector(wave, 4, b)
    BENCH_950.run(f"v_permlane{half}_swap_b32 v2, v4", wave)
    for i in range(TOTAL):
        odd = i // half % 2
        assert get_vector(wave, 2)[i] == (b[i - half] if odd else a[i])
        assert get_vector(wave, 4)[i] == (b[i] if odd else a[i + half])
