# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Parsing of code objects and the launch interface's refusals."""

from __future__ import annotations

import dataclasses
import struct

import msgpack
import numpy as np
import pytest

from gfxemu import Checks, Device, EmulationError, LlvmMc
from gfxemu.code_object import Kernel, parse
from gfxemu.errors import CodeObjectError, MemoryFault, UnsupportedInstruction
from gfxemu.memory import Memory
from gfxemu.tests.assembly import DESCRIPTOR, ROTATE, Launch, program
from gfxemu.workgroup import Schedule


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"__CLANG_OFFLOAD_BUNDLE__" + bytes(100)])
def test_not_a_code_object(data: bytes) -> None:
    with pytest.raises(CodeObjectError, match="not an ELF code object"):
        parse(data)


def test_unknown_arch() -> None:
    with pytest.raises(ValueError, match="gfx90a, gfx942, gfx950"):
        Device("gfx1100", LlvmMc.from_environment())
    host = bytearray(64)
    host[:6], host[18] = b"\x7fELF\x02\x01", 62
    with pytest.raises(CodeObjectError, match="supported"):
        parse(bytes(host))


def _hand_written(kernarg_size: int, symbol_size: int) -> bytes:
    """A code object whose code section is 8 instructions, with the kernel at the third."""
    tool = LlvmMc.from_environment()
    code = tool.assemble(["s_nop 1"] * 7 + ["s_endpgm"], "gfx942")
    metadata = msgpack.packb(
        {"amdhsa.kernels": [{".symbol": "k.kd", ".kernarg_segment_size": 352}]}
    )
    note = struct.pack("<III", 7, len(metadata), 32) + b"AMDGPU\0\0" + metadata
    note += bytes(-len(note) % 4)
    descriptor = bytearray(64)
    struct.pack_into("<I", descriptor, 8, kernarg_size)
    struct.pack_into("<q", descriptor, 16, 0x1000 + 8 - 0x400)  # code from the descriptor
    names = b"\0k\0k.kd\0"
    symbols = bytes(24)
    symbols += struct.pack("<IBBHQQ", 1, 0x12, 0, 3, 0x1008, symbol_size)
    symbols += struct.pack("<IBBHQQ", 3, 0x11, 0, 2, 0x400, 64)
    # Section: type, flags (allocated, executed), address, contents, link, entry size.
    sections = [
        (0, 0, 0, b"", 0, 0), (7, 2, 0x200, note, 0, 0), (1, 2, 0x400, bytes(descriptor), 0, 0),
        (1, 6, 0x1000, code, 0, 0), (2, 0, 0, symbols, 5, 24), (3, 0, 0, names, 0, 0),
    ]  # fmt: skip
    body, headers = b"", b""
    for kind, flags, address, data, link, entry in sections:
        headers += struct.pack("<IIQQQQIIQQ", 0, kind, flags, address, 64 + len(body), len(data),
                               link, 0, 4, entry)  # fmt: skip
        body += data + bytes(-len(data) % 8)
    head = b"\x7fELF\x02\x01\x01\x40\x03".ljust(16, b"\0")
    head += struct.pack("<HHIQQQIHHHHHH", 3, 224, 1, 0, 0, 64 + len(body), 0x4C, 64, 0, 0, 64,
                        len(sections), 5)  # fmt: skip
    return head + body + headers


@pytest.mark.parametrize(
    ("kernarg_size", "symbol_size", "expected"), [(0, 0, (352, 24)), (16, 8, (16, 8))]
)
def test_sizes_that_a_code_object_leaves_out(
    kernarg_size: int, symbol_size: int, expected: tuple[int, int]
) -> None:
    kernel = parse(_hand_written(kernarg_size, symbol_size)).kernel("k")
    assert (kernel.descriptor.kernarg_size, len(kernel.code)) == expected


def test_schedules_by_name() -> None:
    for good in ("barrier", "sliced:8", "random:0"):
        assert Schedule.parse(good)
    for bad in ("", "sliced", "sliced:0", "random:x", "barrier:1", "fair"):
        with pytest.raises(ValueError, match="use barrier"):
            Schedule.parse(bad)


def test_blocks_too_large_for_a_kernel() -> None:
    with pytest.raises(EmulationError, match=r"allows 1\.\.1024"):
        Launch(ROTATE, block=1025)


def test_memory_map() -> None:
    memory = Memory()
    first = memory.register(np.zeros(100, np.uint8), "first")
    second = memory.register(np.zeros((4, 5), np.float32), "second")
    assert second - first > 1 << 20, "guard space"
    assert memory.find(first, first + 100).name == "first"
    with pytest.raises(MemoryFault, match=r"first.* and second"):
        memory.find(first + 99, first + 101)
    with pytest.raises(ValueError, match="overlaps first"):
        memory.register(np.zeros(8, np.uint8), "third", address=first + 96)
    with pytest.raises(ValueError, match="contiguous"):
        memory.register(np.zeros((4, 4), np.uint8)[:, ::2], "fourth")
    memory.unregister(first)
    with pytest.raises(MemoryFault, match="no buffer starts"):
        memory.unregister(first)


def test_access_across_buffers_in_one_instruction() -> None:
    memory = Memory()
    arrays = [np.arange(i, i + 8, dtype=np.uint32) for i in (0, 100)]
    bases = [memory.register(a, f"b{i}") for i, a in enumerate(arrays)]
    addresses = np.array([bases[0] + 4, bases[1] + 8, bases[0]], np.uint64)
    assert memory.load(addresses, 4).tolist() == [1, 102, 0]
    memory.store(addresses, 4, np.array([7, 8, 9], np.uint32))
    assert arrays[0][:2].tolist() == [9, 7] and arrays[1][2] == 8
    memory.update(np.add, addresses, np.zeros(3, np.float32))


# Stores v0, then what the scalar registers point to: the output is [pointer to out, ...].
_INITIAL_STATE = (
    "s_load_dwordx2 s[8:9], s[2:3], 0x0",
    "s_load_dwordx8 s[12:19], s[2:3], 0x10",
    "s_load_dwordx4 s[20:23], s[0:1], 0x0",
    "s_waitcnt lgkmcnt(0)",
    *(f"v_mov_b32 v{2 + i}, s{register}" for i, register in enumerate((4, 5, 6, *range(12, 24)))),
    "v_mov_b32 v17, v0",
    "v_readfirstlane_b32 s24, v0",
    "s_cmp_lg_u32 s24, 0x300000",
    "s_cbranch_scc1 9",
    "v_mov_b32 v1, 0",
    *(
        f"global_store_dwordx4 v1, v[{2 + 4 * i}:{5 + 4 * i}], s[8:9] offset:{16 * i}"
        for i in range(4)
    ),
    "s_endpgm",
)


def _launch_initial_state(metadata: dict) -> np.ndarray:
    device = Device("gfx942", LlvmMc.from_environment())
    out = np.zeros(64 * 4, np.uint32)
    descriptor = dataclasses.replace(
        DESCRIPTOR, kernarg_size=64, user_sgprs=4, workgroup_id=(True, True, True),
        enabled=frozenset({"dispatch_ptr", "kernarg_segment_ptr"}),
    )  # fmt: skip
    device.launch(
        Kernel("text", descriptor, b"", metadata), program(_INITIAL_STATE), grid=(2, 3, 4),
        block=(16, 4, 4), kernarg=struct.pack("<Q", device.memory.register(out, "out")),
        checks=Checks.none(),
    )  # fmt: skip
    return out


def test_initial_state() -> None:
    """Work-item and workgroup ids, hidden arguments and the dispatch packet."""
    names = [("hidden_block_count_x", 16, 4), ("hidden_block_count_y", 20, 4),
             ("hidden_block_count_z", 24, 4), ("hidden_group_size_x", 28, 2),
             ("hidden_group_size_y", 30, 2), ("hidden_group_size_z", 32, 2),
             ("hidden_remainder_x", 34, 2), ("hidden_grid_dims", 36, 2)]  # fmt: skip
    arguments = [{".value_kind": n, ".offset": o, ".size": s} for n, o, s in names]
    out = _launch_initial_state({".args": arguments})
    assert out[:3].tolist() == [1, 2, 3], "the last workgroup stores last"
    assert out[3:6].tolist() == [2, 3, 4]
    assert out[6:11].tolist() == [16 | 4 << 16, 4, 3, 0, 0]
    header, dimensions, bx, by, bz, _, gx = struct.unpack("<HHHHHHI", out[11:15].tobytes())
    assert (header, dimensions, bx, by, bz, gx) == (2, 3, 16, 4, 4, 32)
    # All lanes store to one place, and the last one wins: item (15, 3, 3).
    assert out[15] == 3 << 20 | 3 << 10 | 15


def test_unknown_hidden_arguments_are_refused() -> None:
    argument = {".value_kind": "hidden_heap_v1", ".offset": 16, ".size": 8}
    with pytest.raises(UnsupportedInstruction, match="hidden_heap_v1"):
        _launch_initial_state({".args": [argument]})
