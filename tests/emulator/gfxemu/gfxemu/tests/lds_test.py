# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""LDS instructions byte by byte, their late landing, lane permutations."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

import numpy as np
import pytest

from gfxemu.errors import MemoryFault, UnsupportedInstruction
from gfxemu.pending import wait_lgkm
from gfxemu.tests.bench import (
    LANES,
    MASKS,
    POISON,
    TOTAL,
    Bench,
    active,
    get_vector,
    make_wave,
    set_vector,
)
from gfxemu.tests.exact import M32, signed
from gfxemu.wave import Wave

_BYTES = 4096
_READS = ["ds_read_u8", "ds_read_i8", "ds_read_u16", "ds_read_i16", "ds_read_b32", "ds_read_b64",
          "ds_read_b96", "ds_read_b128", "ds_read_u8_d16", "ds_read_u8_d16_hi", "ds_read_i8_d16",
          "ds_read_i8_d16_hi", "ds_read_u16_d16", "ds_read_u16_d16_hi"]  # fmt: skip
_READS2 = ["ds_read2_b32", "ds_read2_b64", "ds_read2st64_b32", "ds_read2st64_b64"]
_WRITES = ["ds_write_b8", "ds_write_b16", "ds_write_b32", "ds_write_b64", "ds_write_b96",
           "ds_write_b128", "ds_write_b8_d16_hi", "ds_write_b16_d16_hi"]  # fmt: skip
_WRITES2 = [n.replace("read", "write") for n in _READS2]


def _size(name: str) -> int:
    return int(re.search(r"_[bui](\d+)", name)[1]) // 8  # type: ignore[index]


def _registers(first: int, size: int) -> str:
    count = max(size // 4, 1)
    return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"


def _line(name: str) -> str:
    size = _size(name)
    second = 2 if "st64" in name else 8
    if name in _READS:
        return f"{name} {_registers(10, size)}, v1 offset:12"
    if name in _READS2:
        return f"{name} {_registers(10, 2 * size)}, v1 offset0:1 offset1:{second}"
    if name in _WRITES:
        return f"{name} v1, {_registers(10, size)} offset:12"
    return f"{name} v1, {_registers(10, size)}, {_registers(20, size)} offset0:1 offset1:{second}"


def _offsets(name: str) -> list[int]:
    if "2" not in name.split("_")[1]:
        return [12]
    unit = _size(name) * (64 if "st64" in name else 1)
    return [unit, 2 * unit if "st64" in name else 8 * unit]


_SWIZZLES: dict[str, Callable[[int], int]] = {
    "swizzle(QUAD_PERM,3,0,1,1)": lambda lane: lane // 4 * 4 + (3, 0, 1, 1)[lane % 4],
    "swizzle(SWAP,16)": lambda lane: (lane + 16) % 32,
    "swizzle(REVERSE,8)": lambda lane: lane // 8 * 8 + 7 - lane % 8,
    "swizzle(BROADCAST,4,2)": lambda lane: lane // 4 * 4 + 2,
    'swizzle(BITMASK_PERM,"01pip")': lambda lane: 8 + lane % 8 - 2 * (lane & 2) + 2,
}
_PERMUTES = ["ds_bpermute_b32 v10, v1, v2 offset:8", "ds_permute_b32 v10, v1, v2 offset:8"]
BENCH = Bench([*map(_line, _READS + _READS2 + _WRITES + _WRITES2), *_PERMUTES,
               *(f"ds_swizzle_b32 v10, v2 offset:{offset}" for offset in _SWIZZLES),
               _line("ds_read2_b64").replace("v[10:13]", "v[20:23]")])  # fmt: skip
_TRANSPOSED = {bits: f"ds_read_b64_tr_b{bits} v[10:11], v1 offset:16" for bits in (8, 16)}
BENCH_950 = Bench(_TRANSPOSED.values(), "gfx950")


def TESTED() -> set[str]:
    return BENCH.names() | BENCH_950.names()


def _fill(wave: Wave) -> list[bytearray]:
    """Different known bytes in both workgroups."""
    content = [
        bytearray((i * 7 + (i >> 8) * 3 + g * 101) & 0xFF for i in range(_BYTES)) for g in (0, 1)
    ]
    for group in (0, 1):
        wave.group.lds._data[group, :_BYTES] = np.frombuffer(bytes(content[group]), np.uint8)
    return content


def _content(wave: Wave) -> list[bytes]:
    return [bytes(wave.group.lds._data[g, :_BYTES]) for g in (0, 1)]


def _addresses(size: int, unaligned: bool) -> list[int]:
    step = size + 1 if unaligned else max(size, 4)
    return [i % LANES * 5 % LANES * step for i in range(TOTAL)]


def _expected_read(name: str, data: bytes, address: int, old: int) -> int:
    size, out = _size(name), 0
    for i, offset in enumerate(_offsets(name)):
        at = address + offset
        raw = int.from_bytes(data[at : at + size], "little")
        if "_i" in name:
            raw = signed(raw, 8 * size) & (0xFFFF if "d16" in name else M32)
        if "d16" in name:
            shift = 16 if name.endswith("hi") else 0
            raw = old & ~(0xFFFF << shift) | raw << shift
        out |= raw << 8 * max(size, 4) * i
    return out


@pytest.mark.parametrize("exec_mask", MASKS)
@pytest.mark.parametrize("name", _READS + _READS2)
def test_read(name: str, exec_mask: int) -> None:
    size = _size(name)
    bits = 8 * max(size, 4) * len(_offsets(name))
    old = 0x0123_4567_89AB_CDEF_1122_3344_5566_7788_99AA & ((1 << bits) - 1)
    for unaligned in (False, True):
        wave = make_wave(exec_mask)
        content = _fill(wave)
        addresses = _addresses(size, unaligned)
        set_vector(wave, 1, addresses)
        set_vector(wave, 10, [old] * TOTAL, bits)
        BENCH.run(_line(name), wave)
        result = get_vector(wave, 10, bits)
        for lane, on in enumerate(active(exec_mask)):
            data = content[lane // LANES]
            wanted = _expected_read(name, data, addresses[lane], old) if on else old
            assert result[lane] == wanted, (lane, unaligned)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("bits", _TRANSPOSED)
def test_transposing_read(bits: int, late: bool) -> None:
    """Of each 16 lanes, some hold the addresses of a row's parts; lane i gets the items i."""
    wave = make_wave(late=late)
    content = _fill(wave)
    addresses = [8 * (i * 11 % LANES) + 512 * (i // LANES) for i in range(TOTAL)]
    set_vector(wave, 1, addresses)
    BENCH_950.run(_TRANSPOSED[bits], wave)
    if late:
        assert get_vector(wave, 10, 64) == [POISON << 32 | POISON] * TOTAL
        wait_lgkm(wave, 0)
    for lane, value in enumerate(get_vector(wave, 10, 64)):
        first, column = lane // 16 * 16, lane % 16
        size, together = bits // 8, 64 // bits  # bytes of an item, items that a lane reads
        for row in range(64 // bits):
            holder = first + 16 // together * row + column // together
            at = addresses[holder] + 16 + size * (column % together)
            wanted = int.from_bytes(content[lane // LANES][at : at + size], "little")
            assert value >> bits * row & (1 << bits) - 1 == wanted


def test_a_transposing_read_needs_all_lanes() -> None:
    with pytest.raises(UnsupportedInstruction, match="switched off"):
        BENCH_950.run(_TRANSPOSED[16], make_wave(MASKS[1]))


@pytest.mark.parametrize("exec_mask", MASKS)
@pytest.mark.parametrize("name", _WRITES + _WRITES2)
def test_write(name: str, exec_mask: int) -> None:
    size = _size(name)
    bits = 8 * max(size, 4)
    # The parts of different lanes must not overlap.
    for unaligned in (False,) if name in _WRITES2 else (False, True):
        wave = make_wave(exec_mask)
        content = _fill(wave)
        addresses = _addresses(size if "st64" in name else 2 * size, unaligned)
        set_vector(wave, 1, addresses)
        values = [
            [
                (0x0102_0304_0506_0708_090A_0B0C_0D0E_0F10 * (3 * i + k)) & ((1 << bits) - 1)
                for i in range(TOTAL)
            ]
            for k in (1, 2)
        ]
        set_vector(wave, 10, values[0], bits)
        set_vector(wave, 20, values[1], bits)
        BENCH.run(_line(name), wave)
        shift = 16 if name.endswith("hi") else 0
        for lane, on in enumerate(active(exec_mask)):
            for k, offset in enumerate(_offsets(name)):
                if on:
                    raw = values[k][lane] >> shift & ((1 << 8 * size) - 1)
                    at = addresses[lane] + offset
                    content[lane // LANES][at : at + size] = raw.to_bytes(size, "little")
        assert _content(wave) == [bytes(c) for c in content]


@pytest.mark.parametrize("name", ["ds_read_b32", "ds_write_b128", "ds_read2_b64", "ds_write_b8"])
def test_out_of_bounds(name: str) -> None:
    highest = _BYTES - _size(name) - max(_offsets(name))
    for bad in (highest + 1, 0xFFFF_FF00):
        wave = make_wave()
        set_vector(wave, 1, [0] * 50 + [bad] + [0] * (TOTAL - 51))
        with pytest.raises(MemoryFault, match="LDS"):
            BENCH.run(_line(name), wave)
    set_vector(wave, 1, [highest] * TOTAL)
    BENCH.run(_line(name), wave)


@pytest.mark.parametrize("exec_mask", MASKS)
@pytest.mark.parametrize("line", _PERMUTES)
def test_permute(line: str, exec_mask: int) -> None:
    wave = make_wave(exec_mask)
    on = active(exec_mask)
    targets = [4 * (i * 11 % 64) + 256 * (i % 3) for i in range(TOTAL)]
    set_vector(wave, 1, targets)
    set_vector(wave, 2, list(range(1000, 1000 + TOTAL)))
    set_vector(wave, 10, [5] * TOTAL)
    BENCH.run(line, wave)
    result = get_vector(wave, 10)
    for group in (0, 1):
        pushed = [0] * LANES
        for lane in range(LANES):
            i = group * LANES + lane
            if on[i]:
                pushed[(targets[i] + 8) // 4 % 64] = 1000 + i
        for lane in range(LANES):
            i = group * LANES + lane
            source = group * LANES + (targets[i] + 8) // 4 % 64
            pulled = 1000 + source if on[source] else 0
            wanted = pulled if "bpermute" in line else pushed[lane]
            assert result[i] == (wanted if on[i] else 5), i


@pytest.mark.parametrize("exec_mask", MASKS)
@pytest.mark.parametrize("offset", _SWIZZLES)
def test_swizzle(offset: str, exec_mask: int) -> None:
    wave = make_wave(exec_mask)
    on = active(exec_mask)
    set_vector(wave, 2, list(range(1000, 1000 + TOTAL)))
    set_vector(wave, 10, [5] * TOTAL)
    BENCH.run(f"ds_swizzle_b32 v10, v2 offset:{offset}", wave)
    result = get_vector(wave, 10)
    for i in range(TOTAL):
        source = i // 32 * 32 + _SWIZZLES[offset](i % 32)
        wanted = 1000 + source if on[source] else 0
        assert result[i] == (wanted if on[i] else 5), i


def test_late_read_and_write() -> None:
    """A write is invisible to others until its wait; the wave's own reads come after it."""
    wave = make_wave(late=True, waves=2)
    other = wave.group.waves[1]
    set_vector(wave, 1, [4 * (i % LANES) for i in range(TOTAL)])
    set_vector(wave, 10, [77] * TOTAL)
    BENCH.run("ds_write_b32 v1, v10 offset:12", wave)
    set_vector(wave, 10, [88] * TOTAL)  # the data was taken when the instruction was issued
    set_vector(other, 1, [4 * (i % LANES) for i in range(TOTAL)])
    BENCH.run("ds_read_b32 v10, v1 offset:12", other)
    assert get_vector(other, 10) == [POISON] * TOTAL
    wait_lgkm(other, 0)
    assert get_vector(other, 10) == [POISON] * TOTAL  # LDS still holds what it held
    BENCH.run("ds_read_b32 v10, v1 offset:12", wave)
    wait_lgkm(wave, 1)
    assert get_vector(wave, 10) == [POISON] * TOTAL
    wait_lgkm(wave, 0)
    assert get_vector(wave, 10) == [77] * TOTAL


def test_late_reads_land_in_order() -> None:
    wave = make_wave(late=True)
    _fill(wave)
    set_vector(wave, 1, [0] * TOTAL)
    BENCH.run(_line("ds_read_b32"), wave)
    first = get_vector(wave, 10)
    BENCH.run(_line("ds_read2_b64"), wave)
    assert len(wave.lgkm_queue) == 2
    wait_lgkm(wave, 1)
    assert get_vector(wave, 10)[0] == struct.unpack("<I", _content(wave)[0][12:16])[0] != first[0]
    wait_lgkm(wave, 0)
    assert get_vector(wave, 12)[0] == struct.unpack("<I", _content(wave)[0][64:68])[0]


def test_counter_limit() -> None:
    """LGKM_CNT has 4 bits: once 15 later reads are issued, a read has arrived without any wait."""
    wave = make_wave(late=True)
    _fill(wave)
    set_vector(wave, 1, [0] * TOTAL)
    BENCH.run(_line("ds_read_b32"), wave)
    for _ in range(14):
        BENCH.run(_line("ds_read2_b64").replace("v[10:13]", "v[20:23]"), wave)
    assert get_vector(wave, 10)[0] == POISON
    BENCH.run(_line("ds_read2_b64").replace("v[10:13]", "v[20:23]"), wave)
    assert get_vector(wave, 10)[0] == struct.unpack("<I", _content(wave)[0][12:16])[0]
    assert len(wave.lgkm_queue) == 15
