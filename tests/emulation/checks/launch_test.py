# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Parsing of code objects and the launch interface's refusals."""

from __future__ import annotations

import numpy as np
import pytest
from assembly import ROTATE, Launch

from gfxemu import Device, EmulationError, LlvmMc
from gfxemu.code_object import parse, unpack_message
from gfxemu.errors import CodeObjectError, MemoryFault
from gfxemu.memory import Memory
from gfxemu.workgroup import Schedule


@pytest.mark.parametrize(("data", "value"), [
    (b"\x05", 5), (b"\xff", -1), (b"\xcc\x80", 128), (b"\xcd\x01\x00", 256),
    (b"\xce\x00\x01\x00\x00", 65536), (b"\xcf" + bytes(7) + b"\x09", 9), (b"\xd0\x80", -128),
    (b"\xd1\x80\x00", -32768), (b"\xd2\xff\xff\xff\xfe", -2), (b"\xd3" + b"\xff" * 8, -1),
    (b"\xc0", None), (b"\xc2", False), (b"\xc3", True), (b"\xa3abc", "abc"), (b"\xd9\x02hi", "hi"),
    (b"\xda\x00\x02hi", "hi"), (b"\xc4\x02hi", b"hi"), (b"\x92\x01\x02", [1, 2]),
    (b"\xdc\x00\x01\x07", [7]), (b"\x81\xa1a\x01", {"a": 1}), (b"\xde\x00\x01\xa1a\x90", {"a": []}),
    (b"\xcb\x3f\xf8" + bytes(6), 1.5),
])  # fmt: skip
def test_message_pack(data: bytes, value: object) -> None:
    assert unpack_message(data) == value


def test_message_pack_refuses_what_it_does_not_know() -> None:
    with pytest.raises(CodeObjectError, match="tag 0xc7"):
        unpack_message(b"\xc7\x00\x01")


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"__CLANG_OFFLOAD_BUNDLE__" + bytes(100)])
def test_not_a_code_object(data: bytes) -> None:
    with pytest.raises(CodeObjectError, match="not a 64-bit ELF"):
        parse(data)


def test_unknown_arch() -> None:
    with pytest.raises(ValueError, match="gfx942, gfx950"):
        Device("gfx90a", LlvmMc.from_environment())
    host = bytearray(64)
    host[:5], host[18] = b"\x7fELF\x02", 62
    with pytest.raises(CodeObjectError, match="supported"):
        parse(bytes(host))


def test_schedules_by_name() -> None:
    for good in ("barrier", "sliced:8", "random:0"):
        assert Schedule.parse(good)
    for bad in ("", "sliced", "sliced:0", "random:x", "barrier:1", "fair"):
        with pytest.raises(ValueError, match="use barrier"):
            Schedule.parse(bad)


def test_blocks_too_large_for_a_kernel() -> None:
    with pytest.raises(EmulationError, match="allows 1..1024"):
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
    memory.add_float32(addresses, np.zeros(3, np.float32))
