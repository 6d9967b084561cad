# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Global, buffer, flat, scratch and scalar memory instructions, byte by byte."""

from __future__ import annotations

import random
import struct
from fractions import Fraction

import numpy as np
import pytest

from gfxemu.checks import COMPARED, COUNTED, LEFT_OUT, Checks
from gfxemu.errors import MemoryFault, UnsupportedInstruction
from gfxemu.lds import Lds
from gfxemu.memory import Memory
from gfxemu.pending import wait_lgkm, wait_vector_memory
from gfxemu.tests import exact
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
from gfxemu.tests.exact import BF16, EDGE_F16, EDGE_F32, EDGE_U32, F16, F32, M32, signed
from gfxemu.vector_memory import SCRATCH
from gfxemu.wave import M0, Wave

_SIZE = 8192
# type -> (bytes, sign-extended, half of the register or None)
_LOADS = {
    "ubyte": (1, False, None),
    "sbyte": (1, True, None),
    "ushort": (2, False, None),
    "sshort": (2, True, None),
    "dword": (4, False, None),
    "dwordx2": (8, False, None),
    "dwordx3": (12, False, None),
    "dwordx4": (16, False, None),
    "short_d16": (2, False, 0),
    "short_d16_hi": (2, False, 1),
    "ubyte_d16": (1, False, 0),
    "ubyte_d16_hi": (1, False, 1),
    "sbyte_d16": (1, True, 0),
    "sbyte_d16_hi": (1, True, 1),
}
_STORES = {
    "byte": (1, 0),
    "short": (2, 0),
    "dword": (4, 0),
    "dwordx2": (8, 0),
    "dwordx3": (12, 0),
    "dwordx4": (16, 0),
    "short_d16_hi": (2, 16),
    "byte_d16_hi": (1, 16),
}


def _registers(first: int, size: int) -> str:
    count = -(-size // 4)
    return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"


def _buffer_line(kind: str, text: str, size: int) -> str:
    return f"buffer_{kind}_{text} {_registers(10, size)}, v1, s[8:11], s5 offen offset:20"


def _lines(space: str, kind: str, text: str, size: int) -> list[tuple[str, str]]:
    """(addressing form, instruction) pairs."""
    data = _registers(10, size)
    operands = (
        (lambda a, s: f"{data}, {a}{s}") if kind == "load" else (lambda a, s: f"{a}, {data}{s}")
    )
    name = f"{space}_{kind}_{text}"
    if space == "flat":
        return [("vector", f"{name} {operands('v[2:3]', '')} offset:16")]
    if space == "global":
        return [
            ("vector", f"{name} {operands('v[2:3]', ', off')} offset:-16"),
            ("scalar", f"{name} {operands('v1', ', s[6:7]')} offset:16 nt"),
        ]
    return [
        ("fixed", f"{name} {operands('off', ', off')} offset:16"),
        ("register", f"{name} {operands('v1', ', off')} offset:16"),
        ("scalar", f"{name} {operands('off', ', s5')} offset:16"),
    ]


_SPACES = ("global", "flat", "scratch")
_ALL = [
    (space, kind, text, form, line)
    for space in _SPACES
    for kind, table in (("load", _LOADS), ("store", _STORES))
    for text, row in table.items()
    for form, line in _lines(space, kind, text, row[0])
]
_SMEM = [
    f"s_load_dword{'' if n == 1 else f'x{n}'} s[{24}:{24 + n - 1}], s[6:7], {o}".replace(
        "s[24:24]", "s24"
    )
    for n in (1, 2, 4, 8, 16)
    for o in ("0x10", "s5")
]
_ATOMICS = [
    line
    for kind in ("add_f32", "pk_add_f16", "pk_add_bf16")
    for line in (
        f"buffer_atomic_{kind} v10, v1, s[8:11], s5 offen offset:20",
        f"global_atomic_{kind} v1, v10, s[6:7] offset:16",
    )
]
_ATOMICS_950 = [line for line in _ATOMICS if line.startswith("buffer_atomic_pk_add_bf16")]
_UNSIGNED_MAXIMUM = "global_atomic_umax v1, v10, s[6:7] offset:16"
_TO_LDS = ["buffer_load_dword v1, s[8:11], s5 offen offset:20 lds"]
_TO_LDS_950 = [
    "buffer_load_dwordx4 v1, s[8:11], s5 offen offset:20 lds",
    "buffer_load_dwordx3 v1, s[8:11], s5 offen offset:20 lds",
]
_ODD = [
    "buffer_load_dword v10, off, s[8:11], 0 offset:4",
    "buffer_load_dword v10, v1, s[8:11], 0 offen",
]
# The index in v1, or index and offset in v[2:3].
_INDEXED = [
    ("load", "dword", "buffer_load_dword v10, v1, s[8:11], s5 idxen offset:8"),
    ("load", "dwordx4", "buffer_load_dwordx4 v[10:13], v[2:3], s[8:11], s5 idxen offen offset:8"),
    ("load", "ushort", "buffer_load_ushort v10, v[2:3], s[8:11], s5 idxen offen offset:8"),
    ("store", "dword", "buffer_store_dword v10, v[2:3], s[8:11], s5 idxen offen offset:8"),
    ("store", "dwordx4", "buffer_store_dwordx4 v[10:13], v1, s[8:11], s5 idxen offset:8"),
]
_INDEXED_ATOMIC = "buffer_atomic_add_f32 v10, v1, s[8:11], s5 idxen offset:8"
_INDEXED_TO_LDS = "buffer_load_dword v1, s[8:11], s5 idxen offset:8 lds"
BENCH = Bench(
    [a[4] for a in _ALL]
    + [_buffer_line("load", t, r[0]) for t, r in _LOADS.items()]
    + [_buffer_line("store", t, r[0]) for t, r in _STORES.items()]
    + _SMEM
    + [line for line in _ATOMICS if line not in _ATOMICS_950]
    + [_UNSIGNED_MAXIMUM]
    + _TO_LDS
    + _ODD
    + [line for _, _, line in _INDEXED]
    + [_INDEXED_ATOMIC, _INDEXED_TO_LDS]
)
BENCH_950 = Bench([_TO_LDS_950[0], *_ATOMICS_950], "gfx950")


def _scratch_buffer_lines(kind: str, text: str, size: int) -> list[tuple[str, str]]:
    data = _registers(10, size)
    name = f"buffer_{kind}_{text} {data}"
    return [
        ("fixed", f"{name}, off, s[12:15], 0 offset:16"),
        ("register", f"{name}, v1, s[12:15], 0 offen offset:16"),
    ]


# gfx90a: scratch is a buffer.
_SCRATCH_90A = [
    (kind, text, form, line)
    for kind, table in (("load", _LOADS), ("store", _STORES))
    for text, row in table.items()
    for form, line in _scratch_buffer_lines(kind, text, row[0])
]
_SCRATCH_TO_LDS_90A = "buffer_load_dword v1, s[12:15], 0 offen lds"
BENCH_90A = Bench([line[3] for line in _SCRATCH_90A] + [_SCRATCH_TO_LDS_90A], "gfx90a")


def TESTED() -> set[str]:
    return BENCH.names() | BENCH_90A.names() | BENCH_950.names()


class _Setup:
    """8 KiB of known bytes at an address, and the registers the lines above use."""

    def __init__(self, exec_mask: int, late: bool = False):
        self.bytes = bytearray((i * 37 + (i >> 8) * 11 + 3) & 0xFF for i in range(_SIZE))
        self.array = np.frombuffer(bytes(self.bytes), np.uint8).copy()
        self.memory = Memory()
        self.base = self.memory.register(self.array, "test")
        self.wave = make_wave(exec_mask, late=late, memory=self.memory)
        self.on = active(exec_mask)

    def expected_load(self, text: str, offsets: list[int | None], old: int) -> list[int]:
        """One integer of all destination registers per lane."""
        return [
            _loaded(self.bytes, text, offset, old) if self.on[lane] else old
            for lane, offset in enumerate(offsets)
        ]


def _loaded(memory: bytes, text: str, offset: int | None, old: int) -> int:
    """The value that a load of that type at an offset makes of the old one; None reads zero."""
    size, sign, half = _LOADS[text]
    raw = 0 if offset is None else int.from_bytes(memory[offset : offset + size], "little")
    if sign:
        raw = signed(raw, 8 * size) & (0xFFFF if half is not None else M32)
    if half is None:
        return raw
    return old & ~(0xFFFF << 16 * half) | raw << 16 * half


_OLD = 0x1111_2222_3333_4444_5555_6666_7777_8888


def _old(size: int) -> int:
    return _OLD & ((1 << 32 * -(-size // 4)) - 1)


def _prepare(setup: _Setup, form: str, offsets: list[int], immediate: int) -> None:
    """Registers so that every lane addresses base + its offset."""
    wave = setup.wave
    if form == "vector":
        set_vector(wave, 2, [setup.base + o - immediate for o in offsets], 64)
    else:
        wave.write64(6, setup.base + 32)
        set_vector(wave, 1, [o - immediate - 32 & M32 for o in offsets])


def _offsets(size: int, step: int) -> list[int]:
    """Scattered, aligned to `step`, all different so that stores do not overlap."""
    unit = -(-size // step) * step
    return [64 + (i * 29 % TOTAL) * unit for i in range(TOTAL)]


@pytest.mark.parametrize("exec_mask", MASKS)
@pytest.mark.parametrize(
    ("space", "kind", "text", "form", "line"),
    [a for a in _ALL if a[0] != "scratch"],
    ids=[a[4] for a in _ALL if a[0] != "scratch"],
)
def test_global(space: str, kind: str, text: str, form: str, line: str, exec_mask: int) -> None:
    size = (_LOADS if kind == "load" else _STORES)[text][0]
    immediate = -16 if "offset:-16" in line else 16
    for step in (4, 1):  # aligned, then not
        setup = _Setup(exec_mask)
        offsets = _offsets(size, 4 if step == 4 else 3)
        if form == "scalar":
            offsets = [o + 64 for o in offsets]
        _prepare(setup, form, offsets, immediate)
        _access(setup, kind, text, line, offsets)


def _access(setup: _Setup, kind: str, text: str, line: str, offsets: list[int | None]) -> None:
    size = (_LOADS if kind == "load" else _STORES)[text][0]
    bits = 32 * -(-size // 4)
    if kind == "load":
        set_vector(setup.wave, 10, [_old(size)] * TOTAL, bits)
        BENCH.run(line, setup.wave)
        assert get_vector(setup.wave, 10, bits) == setup.expected_load(text, offsets, _old(size))
        return
    shift = _STORES[text][1]
    values = [
        (i * 0x0123_4567_89AB_CDEF_1357_9BDF_0246_8ACE + i) & ((1 << bits) - 1)
        for i in range(TOTAL)
    ]
    set_vector(setup.wave, 10, values, bits)
    BENCH.run(line, setup.wave)
    wanted = bytearray(setup.bytes)
    for lane, offset in enumerate(offsets):
        if setup.on[lane] and offset is not None:
            raw = (values[lane] >> shift) & ((1 << 8 * size) - 1)
            wanted[offset : offset + size] = raw.to_bytes(size, "little")
    assert bytes(setup.array) == bytes(wanted)


def _resource(setup: _Setup, records: int, soffset: int) -> None:
    base = setup.base
    for i, word in enumerate((base & M32, base >> 32, records, 0x00020000)):
        setup.wave.write32(8 + i, word)
    setup.wave.write32(5, soffset)


@pytest.mark.parametrize("exec_mask", MASKS)
@pytest.mark.parametrize(
    ("kind", "text"), [("load", t) for t in _LOADS] + [("store", t) for t in _STORES]
)
def test_buffer(kind: str, text: str, exec_mask: int) -> None:
    """offset = voffset + 20, address = base + soffset + offset, all in range."""
    size = (_LOADS if kind == "load" else _STORES)[text][0]
    setup = _Setup(exec_mask)
    offsets = _offsets(size, 4)
    _resource(setup, _SIZE, 48)
    set_vector(setup.wave, 1, [o - 20 for o in offsets])
    _access(setup, kind, text, _buffer_line(kind, text, size), [o + 48 for o in offsets])


@pytest.mark.parametrize("exec_mask", MASKS)
@pytest.mark.parametrize("text", _LOADS)
def test_buffer_load_out_of_range(text: str, exec_mask: int) -> None:
    """Each dword is checked by itself: what is out of range reads as zero."""
    size = _LOADS[text][0]
    part = min(size, 4)
    setup = _Setup(exec_mask)
    records = 256
    offsets = [records - 40 + i if part == 1 else records - 40 + 4 * (i % 16) for i in range(TOTAL)]
    offsets[3] = offsets[66] = 0xFFFF_FFF0  # wraps in 32 bits, must not
    _resource(setup, records, 0)
    set_vector(setup.wave, 1, [o - 20 & M32 for o in offsets])
    line = _buffer_line("load", text, size)
    bits = 32 * -(-size // 4)
    set_vector(setup.wave, 10, [_old(size)] * TOTAL, bits)
    BENCH.run(line, setup.wave)
    result = get_vector(setup.wave, 10, bits)
    for lane, offset in enumerate(offsets):
        wanted = _old(size)
        if setup.on[lane]:
            wanted = 0
            for i in range(0, size, part):
                if offset + i + part <= records:
                    raw = int.from_bytes(setup.bytes[offset + i : offset + i + part], "little")
                    wanted |= raw << 8 * i
            if size < 4:
                inside = [offset if offset + size <= records else None]
                full = [None] * lane + inside + [None] * (TOTAL - lane - 1)
                wanted = setup.expected_load(text, full, _old(size))[lane]
        assert result[lane] == wanted, (lane, offset)


@pytest.mark.parametrize("exec_mask", MASKS)
@pytest.mark.parametrize("text", _STORES)
def test_buffer_store_out_of_range(text: str, exec_mask: int) -> None:
    size, shift = _STORES[text]
    part = min(size, 4)
    setup = _Setup(exec_mask)
    records = 4 * 160
    stride = max(size, 4)
    offsets = [
        4 * 160 - 8 * stride + stride * (i % 64) + (0 if size < 8 else 4) for i in range(TOTAL)
    ]
    _resource(setup, records, 0)
    set_vector(setup.wave, 1, [o - 20 for o in offsets])
    bits = 32 * -(-size // 4)
    values = [
        (0x0102_0304_0506_0708_090A_0B0C_0D0E_0F10 * (i % 64 + 1)) & ((1 << bits) - 1)
        for i in range(TOTAL)
    ]
    set_vector(setup.wave, 10, values, bits)
    BENCH.run(_buffer_line("store", text, size), setup.wave)
    wanted = bytearray(setup.bytes)
    for lane, offset in enumerate(offsets):
        raw = ((values[lane] >> shift) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        for i in range(0, size, part):
            if setup.on[lane] and offset + i + part <= records:
                wanted[offset + i : offset + i + part] = raw[i : i + part]
    assert bytes(setup.array) == bytes(wanted)


def test_buffer_per_workgroup_descriptors() -> None:
    """Base, size and soffset may differ between the workgroups of a batch."""
    setup = _Setup(MASKS[0])
    low = setup.base & M32
    setup.wave.write32(8, np.array([low, low + 1024], np.uint64))
    setup.wave.write32(9, setup.base >> 32)
    setup.wave.write32(10, np.array([64, 200], np.uint64))
    setup.wave.write32(11, 0x00020000)
    set_vector(setup.wave, 1, [4 * (i % LANES) for i in range(TOTAL)])
    BENCH.run(_ODD[1], setup.wave)
    for lane, value in enumerate(get_vector(setup.wave, 10)):
        group, offset = divmod(lane, LANES)
        at = 1024 * group + 4 * offset
        inside = 4 * offset + 4 <= (64, 200)[group]
        assert value == (int.from_bytes(setup.bytes[at : at + 4], "little") if inside else 0)
    BENCH.run(_ODD[0], setup.wave)
    assert get_vector(setup.wave, 10)[0] == int.from_bytes(setup.bytes[4:8], "little")


@pytest.mark.parametrize(("high", "flags"), [(1 << 31, 0), (1 << 30, 0), (0, 1 << 23)])
def test_swizzled_buffers_are_refused(high: int, flags: int) -> None:
    setup = _Setup(MASKS[0])
    _resource(setup, 64, 0)
    setup.wave.write32(9, setup.base >> 32 | 16 << 16 | high)
    setup.wave.write32(11, 0x00020000 | flags)
    with pytest.raises(UnsupportedInstruction, match="swizzled"):
        BENCH.run(_ODD[1], setup.wave)


def test_an_index_without_a_stride_is_refused() -> None:
    setup = _Setup(MASKS[0])
    _resource(setup, 64, 0)
    with pytest.raises(UnsupportedInstruction, match="without a stride"):
        BENCH.run(_INDEXED[0][2], setup.wave)


# soffset in the range check.


@pytest.mark.parametrize("exec_mask", MASKS)
@pytest.mark.parametrize("rule", [COUNTED, LEFT_OUT, COMPARED])
@pytest.mark.parametrize("soffset", [0, 4, 100, [40, 8]])
@pytest.mark.parametrize("text", ["ubyte", "dword", "dwordx4"])
def test_soffset_in_the_range_check(
    text: str, soffset: int | list[int], rule: str, exec_mask: int
) -> None:
    """Byte i of a component is at base + soffset + voffset + 20 in any case."""
    size, records = _LOADS[text][0], 256
    part = min(size, 4)
    setup = _Setup(exec_mask)
    setup.wave.group.checks = Checks(soffset=rule)
    both = soffset if isinstance(soffset, list) else [soffset] * 2
    _resource(setup, records, 0)
    setup.wave.write32(5, soffset if isinstance(soffset, int) else np.array(soffset, np.uint64))
    offsets = [204 + 4 * (i % 13) for i in range(TOTAL)]
    set_vector(setup.wave, 1, [o - 20 for o in offsets])
    bits = 32 * -(-size // 4)
    set_vector(setup.wave, 10, [_old(size)] * TOTAL, bits)
    BENCH.run(_buffer_line("load", text, size), setup.wave)
    decided = 0
    for lane, value in enumerate(get_vector(setup.wave, 10, bits)):
        if not setup.on[lane]:
            assert value == _old(size)
            continue
        s, wanted = both[lane // LANES], 0
        parts = range(offsets[lane], offsets[lane] + size, part)
        counted = [at for at in parts if at + s + part <= records]
        left_out = [at for at in parts if at + part <= records]
        decided += counted != left_out
        for at in left_out if rule == LEFT_OUT else counted:
            raw = int.from_bytes(setup.bytes[at + s : at + s + part], "little")
            wanted |= raw << 8 * (at - offsets[lane])
        assert value == wanted, lane
    told = sum(setup.wave.group.soffset_decided.values())
    assert told == (decided if rule == COMPARED else 0)
    assert (decided > 0) == (soffset != 0)


def test_the_offsets_of_an_instruction_wrap_without_soffset() -> None:
    """voffset + inst_offset has 32 bits; soffset is added to that in full width."""
    setup = _Setup(MASKS[0])
    _resource(setup, 256, 8)
    set_vector(setup.wave, 1, [M32 - 19 if i % 2 else M32 - 23 for i in range(TOTAL)])
    BENCH.run(_buffer_line("load", "dword", 4), setup.wave)
    word = int.from_bytes(setup.bytes[8:12], "little")
    assert get_vector(setup.wave, 10) == [word if i % 2 else 0 for i in range(TOTAL)]


def test_a_store_beyond_the_end_by_its_soffset() -> None:
    """Is dropped; by the other rule it lands behind what the descriptor says."""
    for rule in (COUNTED, LEFT_OUT):
        setup = _Setup(MASKS[0])
        setup.wave.group.checks = Checks(soffset=rule)
        _resource(setup, 256, 64)
        set_vector(setup.wave, 1, [236 - 20] * TOTAL)
        set_vector(setup.wave, 10, [M32] * TOTAL)
        BENCH.run(_buffer_line("store", "dword", 4), setup.wave)
        stored = setup.array[300:304].tolist() == [255] * 4
        assert stored == (rule == LEFT_OUT)


def test_rules_by_name() -> None:
    with pytest.raises(ValueError, match="'counted', 'left out', 'compared'"):
        Checks(soffset="ignored")


# Indexed buffers.


def _index_registers(setup: _Setup, strides: list[int], records: int, line: str) -> list[int]:
    """Registers of an indexed access; the addresses of all lanes, from the array's start."""
    wave, soffset = setup.wave, 12
    _resource(setup, records, soffset)
    wave.write32(9, np.array([setup.base >> 32 | s << 16 for s in strides], np.uint64))
    indices = [i * 7 % LANES for i in range(TOTAL)]
    offsets = [4 * (i % 3) if "offen" in line else 0 for i in range(TOTAL)]
    set_vector(wave, 1, indices)
    set_vector(wave, 2, indices)
    set_vector(wave, 3, offsets)
    return [
        soffset + index * strides[i // LANES] + offset + 8
        for i, (index, offset) in enumerate(zip(indices, offsets, strict=True))
    ]


@pytest.mark.parametrize("exec_mask", MASKS)
@pytest.mark.parametrize("strides", [[4, 4], [36, 20]])
@pytest.mark.parametrize(("kind", "text", "line"), _INDEXED)
def test_indexed_buffer(
    kind: str, text: str, line: str, strides: list[int], exec_mask: int
) -> None:
    """The index alone decides, also where an access is wider than a stride."""
    if kind == "store" and text == "dwordx4" and strides == [4, 4]:
        strides = [16, 20]  # stores must not overlap
    setup = _Setup(exec_mask)
    records = 50
    addresses = _index_registers(setup, strides, records, line)
    inside = [i * 7 % LANES < records for i in range(TOTAL)]
    if kind == "store":  # of the first workgroup alone: both store to one array
        on = np.arange(TOTAL).reshape(2, LANES) < LANES
        setup.wave.set_exec_mask(setup.wave.lanes & on)
        setup.on = [x and i < LANES for i, x in enumerate(setup.on)]
    if "offen" in line and kind == "store":
        set_vector(setup.wave, 3, [0] * TOTAL)
        addresses = [a - 4 * (i % 3) for i, a in enumerate(addresses)]
    expected = [a if x else None for a, x in zip(addresses, inside, strict=True)]
    _access(setup, kind, text, line, expected)


def test_indexed_atomics_and_loads_to_lds() -> None:
    setup = _Setup(MASKS[0])
    setup.array.view(np.float32)[:] = 1
    addresses = _index_registers(setup, [8, 8], 50, _INDEXED_ATOMIC)
    setup.wave.f[10][...] = 2
    BENCH.run(_INDEXED_ATOMIC, setup.wave)
    cells = setup.array.view(np.float32)
    for lane, address in enumerate(addresses):  # both workgroups add
        assert cells[address // 4] == (5 if lane * 7 % LANES < 50 else 1)
    setup = _Setup(MASKS[0])
    addresses = _index_registers(setup, [8, 16], 50, _INDEXED_TO_LDS)
    setup.wave.write32(M0, 64)
    BENCH.run(_INDEXED_TO_LDS, setup.wave)
    for lane, address in enumerate(addresses):
        at = 64 + 8 + 4 * (lane % LANES)
        wanted = bytes(setup.bytes[address : address + 4]) if lane * 7 % LANES < 50 else bytes(4)
        assert bytes(setup.wave.group.lds._data[lane // LANES, at : at + 4]) == wanted


def test_a_stride_without_an_index() -> None:
    """num_records counts bytes."""
    setup = _Setup(MASKS[0])
    _resource(setup, 64, 0)
    setup.wave.write32(9, setup.base >> 32 | 16 << 16)
    set_vector(setup.wave, 1, [4 * (i % LANES) for i in range(TOTAL)])
    BENCH.run(_ODD[1], setup.wave)
    for lane, value in enumerate(get_vector(setup.wave, 10)):
        at = 4 * (lane % LANES)
        assert value == (int.from_bytes(setup.bytes[at : at + 4], "little") if at < 64 else 0)


@pytest.mark.parametrize("exec_mask", MASKS)
def test_atomic_unsigned_maximum(exec_mask: int) -> None:
    setup = _Setup(exec_mask)
    setup.array.view(np.uint32)[:] = 0x8000_0000
    numbers = [EDGE_U32[i % len(EDGE_U32)] for i in range(TOTAL)]
    cells = [40 + i % 7 for i in range(TOTAL)]
    _prepare(setup, "scalar", [4 * c for c in cells], 16)
    set_vector(setup.wave, 10, numbers)
    BENCH.run(_UNSIGNED_MAXIMUM, setup.wave)
    wanted = [0x8000_0000] * (_SIZE // 4)
    for lane in range(TOTAL):
        if setup.on[lane]:
            wanted[cells[lane]] = max(wanted[cells[lane]], numbers[lane])
    assert setup.array.view(np.uint32).tolist() == wanted


@pytest.mark.parametrize("exec_mask", MASKS)
@pytest.mark.parametrize("line", _ATOMICS)
def test_atomic_add(line: str, exec_mask: int) -> None:
    """Lanes that meet at one address add one after the other, both halves by themselves."""
    setup = _Setup(exec_mask)
    form = F16 if "pk_add_f16" in line else BF16 if "bf16" in line else F32
    pool = {F16: EDGE_F16, BF16: [b >> 16 for b in EDGE_F32], F32: EDGE_F32}[form]
    parts = 32 // form.width
    small = [exact.encode(exact.from_fraction(Fraction(i, 10)), form) for i in range(60)]
    rng = random.Random(5)
    rows = [[rng.choice(small if i % 9 else pool) for _ in range(parts)] for i in range(TOTAL)]
    numbers = [sum(x << form.width * k for k, x in enumerate(row)) for row in rows]
    start = [[rng.choice(small) for _ in range(parts)] for _ in range(_SIZE // 4)]
    setup.array.view(np.uint32)[:] = [
        sum(x << form.width * k for k, x in enumerate(row)) for row in start
    ]
    cells = [40 + i % 7 for i in range(TOTAL)]
    if "buffer" in line:
        _resource(setup, 4 * 44, 0)  # the cells from 44 on are out of range
        set_vector(setup.wave, 1, [4 * c - 20 for c in cells])
        inside = [c < 44 for c in cells]
    else:
        _prepare(setup, "scalar", [4 * c for c in cells], 16)
        inside = [True] * TOTAL
    set_vector(setup.wave, 10, numbers)
    add = exact.binary(exact.add, form, flush=False)
    (BENCH_950 if line in _ATOMICS_950 else BENCH).run(line, setup.wave)
    for lane in range(TOTAL):
        if setup.on[lane] and inside[lane]:
            row = start[cells[lane]]
            start[cells[lane]] = [add(a, b) for a, b in zip(row, rows[lane], strict=True)]
    for cell, row in enumerate(start):
        word = int(setup.array.view(np.uint32)[cell])
        for k, wanted in enumerate(row):
            actual = word >> form.width * k & ((1 << form.width) - 1)
            assert exact.same_float(actual, wanted, form), (cell, k)


@pytest.mark.parametrize("exec_mask", MASKS)
@pytest.mark.parametrize(
    ("bench", "line", "size"), [(BENCH, _TO_LDS[0], 4), (BENCH_950, _TO_LDS_950[0], 16)]
)
def test_load_to_lds(bench: Bench, line: str, size: int, exec_mask: int) -> None:
    """To M0 + inst_offset + lane * size; inactive lanes write nothing, lanes out of range zeros."""
    setup = _Setup(exec_mask)
    offsets = [size * (i * 7 % 32) + 64 for i in range(TOTAL)]
    records = 64 + size * 28
    _resource(setup, records, 0)
    set_vector(setup.wave, 1, [o - 20 for o in offsets])
    setup.wave.write32(M0, 0x104)
    bench.run(line, setup.wave)
    lds = setup.wave.group.lds
    for group in range(2):
        data = bytes(lds._data[group])
        for lane in range(LANES):
            offset = offsets[group * LANES + lane]
            at = 0x104 + 20 + lane * size
            wanted = struct.pack("<I", POISON) * (size // 4)
            if at % 4:
                wanted = None
            if setup.on[lane]:
                wanted = (
                    bytes(setup.bytes[offset : offset + size])
                    if offset + size <= records
                    else bytes(size)
                )
            assert data[at : at + size] == wanted


@pytest.mark.parametrize(
    ("bench", "line", "size", "begin"),
    [(BENCH_950, _TO_LDS_950[0], 16, 0x1_2340), (BENCH, _TO_LDS[0], 4, 0x2340)],
)
def test_where_m0_lets_a_load_to_lds_begin(bench: Bench, line: str, size: int, begin: int) -> None:
    """At any byte of LDS: gfx950 has 160 KiB of it, gfx942 as much as 16 bits reach."""
    setup = _Setup(MASKS[0])
    lds = setup.wave.group.lds = Lds(2, 80 << 10, POISON)
    _resource(setup, _SIZE, 0)
    set_vector(setup.wave, 1, [size * (i % LANES) for i in range(TOTAL)])
    setup.wave.write32(M0, 0x1_2340)
    bench.run(line, setup.wave)
    at = begin + 20
    assert bytes(lds._data[1, at : at + size * LANES]) == setup.bytes[20 : 20 + size * LANES]
    assert (lds._data[1, :at].view(np.uint32) == POISON).all()


def test_other_loads_to_lds_are_refused() -> None:
    with pytest.raises(UnsupportedInstruction, match="12 bytes"):
        Bench([_TO_LDS_950[1]], "gfx950").program()


@pytest.mark.parametrize("exec_mask", MASKS)
@pytest.mark.parametrize(
    ("bench", "kind", "text", "form", "line"),
    [(BENCH, *a[1:]) for a in _ALL if a[0] == "scratch"]
    + [(BENCH_90A, *line) for line in _SCRATCH_90A],
)
def test_scratch(bench: Bench, kind: str, text: str, form: str, line: str, exec_mask: int) -> None:
    """Every lane has bytes of its own; a load after a store at the same offset gives them back."""
    size = (_LOADS if kind == "load" else _STORES)[text][0]
    part = min(size, 4)
    wave = make_wave(exec_mask)
    on = active(exec_mask)
    rows = wave.scratch.shape[1]
    content = [
        [(lane * 1000003 + row * 7919) & M32 for row in range(rows)] for lane in range(TOTAL)
    ]
    wave.scratch[...] = np.array(content, np.uint32).reshape(2, LANES, rows).transpose(0, 2, 1)
    for index, word in enumerate(SCRATCH):
        wave.write32(12 + index, word)
    base = [0] * TOTAL
    if form == "register":
        # A buffer's bytes need no alignment.
        base = [(1 if bench is BENCH_90A else part) * (i % 11) for i in range(TOTAL)]
        set_vector(wave, 1, base)
    elif form == "scalar":
        wave.write32(5, np.array([8, 24], np.uint64) if part == 4 else 3 * part)
        base = [8 if i < LANES else 24 for i in range(TOTAL)] if part == 4 else [3 * part] * TOTAL
    raw = [bytearray(b"".join(struct.pack("<I", w) for w in row)) for row in content]
    bits = 32 * -(-size // 4)
    if kind == "load":
        set_vector(wave, 10, [_old(size)] * TOTAL, bits)
        bench.run(line, wave)
        result = get_vector(wave, 10, bits)
        for lane in range(TOTAL):
            wanted = _old(size)
            if on[lane]:
                wanted = _loaded(raw[lane], text, 16 + base[lane], wanted)
            assert result[lane] == wanted, lane
        return
    values = [
        (0x0102_0304_0506_0708_090A_0B0C_0D0E_0F10 * (i + 1)) & ((1 << bits) - 1)
        for i in range(TOTAL)
    ]
    set_vector(wave, 10, values, bits)
    bench.run(line, wave)
    after = wave.scratch.transpose(0, 2, 1).reshape(TOTAL, rows)
    for lane in range(TOTAL):
        if on[lane]:
            at = 16 + base[lane]
            data = (values[lane] >> _STORES[text][1]) & ((1 << 8 * size) - 1)
            raw[lane][at : at + size] = data.to_bytes(size, "little")
        assert after[lane].tobytes() == bytes(raw[lane]), lane


@pytest.mark.parametrize("line", _SMEM)
def test_scalar_load(line: str) -> None:
    name = line.split(" ")[0]
    count = int(name.removeprefix("s_load_dword").lstrip("x") or 1)
    for bases in ([64, 64], [64, 512]):
        setup = _Setup(MASKS[0])
        setup.wave.write64(
            6,
            setup.base + bases[0]
            if bases[0] == bases[1]
            else np.array([setup.base + b for b in bases], np.uint64),
        )
        setup.wave.write32(5, 36)
        BENCH.run(line, setup.wave)
        offset = 36 if line.endswith("s5") else 16
        for i in range(count):
            wanted = [
                int.from_bytes(setup.bytes[b + offset + 4 * i : b + offset + 4 * i + 4], "little")
                for b in bases
            ]
            value = setup.wave.read32(24 + i)
            assert ([value] * 2 if type(value) is int else value.tolist()) == wanted


# Bounds.


@pytest.mark.parametrize(
    "line",
    [
        next(a[4] for a in _ALL if a[:3] == key)
        for key in (("global", "load", "dword"), ("global", "store", "dwordx4"))
    ],
)
def test_global_access_out_of_bounds(line: str) -> None:
    for bad in (-4, _SIZE - 3, _SIZE, 1 << 40):
        setup = _Setup(MASKS[0])
        offsets = [256] * TOTAL
        offsets[77] = bad
        _prepare(setup, "vector", offsets, -16)
        with pytest.raises(MemoryFault, match="nearest: test"):
            BENCH.run(line, setup.wave)
        setup.wave.set_exec_mask(np.arange(TOTAL).reshape(2, LANES) != 77)
        BENCH.run(line, setup.wave)  # an inactive lane may hold any address


def test_scalar_load_out_of_bounds() -> None:
    setup = _Setup(MASKS[0])
    setup.wave.write64(6, setup.base + _SIZE - 32)
    with pytest.raises(MemoryFault):
        BENCH.run("s_load_dwordx8 s[24:31], s[6:7], 0x10", setup.wave)


def test_descriptor_larger_than_its_buffer() -> None:
    setup = _Setup(MASKS[0])
    _resource(setup, _SIZE + 4, 0)
    set_vector(setup.wave, 1, [0] * (TOTAL - 1) + [_SIZE])
    with pytest.raises(MemoryFault):
        BENCH.run(_ODD[1], setup.wave)


@pytest.mark.parametrize("form", ["fixed", "register"])
def test_scratch_access_out_of_bounds(form: str) -> None:
    wave = make_wave()
    line = next(a[4] for a in _ALL if a[:4] == ("scratch", "store", "dwordx4", form))
    set_vector(wave, 1, [236] * TOTAL)
    if form == "fixed":
        wave.scratch = wave.scratch[:, :7]
    with pytest.raises(MemoryFault, match="scratch"):
        BENCH.run(line, wave)


def test_scratch_in_a_buffer_is_checked() -> None:
    wave = make_wave()
    for index, word in enumerate(SCRATCH):
        wave.write32(12 + index, word)
    line = next(x[3] for x in _SCRATCH_90A if x[:3] == ("store", "dwordx4", "register"))
    set_vector(wave, 1, [236] * TOTAL)
    with pytest.raises(MemoryFault, match="scratch"):
        BENCH_90A.run(line, wave)
    with pytest.raises(UnsupportedInstruction, match="scratch in a buffer"):
        BENCH_90A.run(_SCRATCH_TO_LDS_90A, wave)


# Late landing.


def _poisoned(size: int) -> int:
    return sum(POISON << 32 * i for i in range(-(-size // 4)))


@pytest.mark.parametrize("text", _LOADS)
def test_late_load(text: str) -> None:
    """The destination is poison until the wait, in the bits the load writes."""
    size, _, half = _LOADS[text]
    bits = 32 * -(-size // 4)
    setup = _Setup(MASKS[1], late=True)
    offsets = _offsets(size, 4)
    _prepare(setup, "vector", offsets, -16)
    line = next(a[4] for a in _ALL if a[:4] == ("global", "load", text, "vector"))
    set_vector(setup.wave, 10, [_old(size)] * TOTAL, bits)
    BENCH.run(line, setup.wave)
    mask = (1 << bits) - 1 if half is None else 0xFFFF << 16 * half
    meanwhile = [
        _old(size) & ~mask | _poisoned(size) & mask if on else _old(size) for on in setup.on
    ]
    assert get_vector(setup.wave, 10, bits) == meanwhile
    wait_vector_memory(setup.wave, 1)
    assert get_vector(setup.wave, 10, bits) == meanwhile
    wait_vector_memory(setup.wave, 0)
    assert get_vector(setup.wave, 10, bits) == setup.expected_load(text, offsets, _old(size))


def test_late_halves_merge() -> None:
    """Two d16 loads into one register land one after the other."""
    setup = _Setup(MASKS[0], late=True)
    _prepare(setup, "vector", [128] * TOTAL, -16)
    for text in ("short_d16", "short_d16_hi"):
        BENCH.run(
            next(a[4] for a in _ALL if a[:4] == ("global", "load", text, "vector")), setup.wave
        )
    wait_vector_memory(setup.wave, 0)
    half = int.from_bytes(setup.bytes[128:130], "little")
    assert get_vector(setup.wave, 10) == [half | half << 16] * TOTAL


def _count(wave: Wave) -> tuple[int, int]:
    return len(wave.vm_queue), len(wave.lgkm_queue)


@pytest.mark.parametrize(
    ("prefix", "counts"),
    [
        ("global_load_dword ", (1, 0)),
        ("flat_load_dword ", (1, 1)),
        ("global_store_dword ", (1, 0)),
        ("flat_store_dword ", (1, 1)),
        ("scratch_load_dword ", (1, 0)),
        ("scratch_store_dword ", (1, 0)),
    ],
)
def test_counters(prefix: str, counts: tuple[int, int]) -> None:
    setup = _Setup(MASKS[0], late=True)
    _prepare(setup, "vector", [256] * TOTAL, -16)
    BENCH.run(next(a[4] for a in _ALL if a[4].startswith(prefix)), setup.wave)
    assert _count(setup.wave) == counts


def test_scalar_loads_land_in_any_order() -> None:
    setup = _Setup(MASKS[0], late=True)
    setup.wave.write64(6, setup.base)
    BENCH.run("s_load_dword s24, s[6:7], 0x10", setup.wave)
    assert setup.wave.read32(24) == POISON
    wait_lgkm(setup.wave, 1)
    assert setup.wave.read32(24) == POISON
    wait_lgkm(setup.wave, 0)
    assert setup.wave.read32(24) == int.from_bytes(setup.bytes[16:20], "little")


def test_counter_limit() -> None:
    """VM_CNT has 6 bits."""
    setup = _Setup(MASKS[0], late=True)
    _prepare(setup, "vector", [128] * TOTAL, -16)
    load = next(a[4] for a in _ALL if a[:4] == ("global", "load", "dword", "vector"))
    store = next(a[4] for a in _ALL if a[:4] == ("scratch", "store", "dword", "fixed"))
    BENCH.run(load, setup.wave)
    for _ in range(62):
        BENCH.run(store, setup.wave)
    assert get_vector(setup.wave, 10)[0] == POISON
    BENCH.run(store, setup.wave)
    assert get_vector(setup.wave, 10)[0] == int.from_bytes(setup.bytes[128:132], "little")
    assert _count(setup.wave) == (63, 0)
