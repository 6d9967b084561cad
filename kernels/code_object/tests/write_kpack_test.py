# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A kpack as its readers take it: the head, the frames, and where the table says that they are."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import msgpack

ARCH = "gfx942"
ARCHIVE = Path(os.environ["KPACK"]).read_bytes()
OBJECTS = {
    Path(name).name.removesuffix(f".{ARCH}.hsaco"): Path(name).read_bytes()
    for name in os.environ["CODE_OBJECTS"].split()
}
ZSTD = b"\x28\xb5\x2f\xfd"


def read_table() -> dict[str, Any]:
    magic, version, offset = struct.unpack_from("<4sIQ", ARCHIVE)
    assert (magic, version) == (b"KPAK", 1)
    table = msgpack.unpackb(ARCHIVE[offset:])
    assert table["zstd_offset"] + table["zstd_size"] == offset
    return table


def read_frames(table: dict[str, Any]) -> list[bytes]:
    at = table["zstd_offset"]
    (count,) = struct.unpack_from("<I", ARCHIVE, at)
    at += 4
    frames = []
    for _ in range(count):
        (size,) = struct.unpack_from("<I", ARCHIVE, at)
        frames.append(ARCHIVE[at + 4 : at + 4 + size])
        at += 4 + size
    assert at == table["zstd_offset"] + table["zstd_size"]
    return frames


def content_size(frame: bytes) -> int:
    """By the head of a zstd frame (RFC 8878), which has it and no dictionary's number."""
    assert frame.startswith(ZSTD)
    descriptor = frame[4]
    assert descriptor & 3 == 0
    is_single = bool(descriptor & 0x20)
    at, kind = 5 + (not is_single), descriptor >> 6
    assert kind or is_single
    size = int.from_bytes(frame[at : at + 2**kind], "little")
    return size + 256 if kind == 1 else size


def test_the_table_says_what_is_inside() -> None:
    table = read_table()
    assert (table["format_version"], table["group_name"]) == (1, "aiter_attn")
    assert table["gfx_arches"] == [table["gfx_arch_family"]] == [ARCH]
    assert table["compression_scheme"] == "zstd-per-kernel"
    assert table["zstd_offset"] == 64
    assert not any(ARCHIVE[16:64])


def test_each_kernel_is_found_by_its_instance_and_arch() -> None:
    table = read_table()
    frames = read_frames(table)
    assert len(OBJECTS) > 2
    assert table["toc"].keys() == OBJECTS.keys()
    ordinals = []
    for instance, archs in table["toc"].items():
        assert archs.keys() == {ARCH}
        entry = archs[ARCH]
        assert entry["type"] == "hsaco"
        assert entry["original_size"] == len(OBJECTS[instance])
        assert content_size(frames[entry["ordinal"]]) == len(OBJECTS[instance])
        ordinals.append(entry["ordinal"])
    assert sorted(ordinals) == list(range(len(frames)))
