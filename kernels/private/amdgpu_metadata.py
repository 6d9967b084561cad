# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Reads the metadata note of an AMDGPU code object: ELF64, NT_AMDGPU_METADATA, MessagePack."""

from __future__ import annotations

import struct
from typing import Any

_SHT_NOTE = 7
_NOTE_NAME = b"AMDGPU\0"
_NT_AMDGPU_METADATA = 32
_EM_AMDGPU = 224


class MetadataError(Exception):
    """The bytes are no code object, or not one that this reader knows."""


def read_metadata(code_object: bytes) -> dict[str, Any]:
    """The metadata of a code object, as LLVM's AMDGPU guide names its fields.

    Raises MetadataError.
    """
    for kind, name, description in _notes(code_object):
        if kind == _NT_AMDGPU_METADATA and name == _NOTE_NAME:
            value, end = _unpack(description, 0)
            if not isinstance(value, dict) or end != len(description):
                raise MetadataError("the metadata note is not one MessagePack map")
            return value
    raise MetadataError("no AMDGPU metadata note")


def _notes(elf: bytes) -> list[tuple[int, bytes, bytes]]:
    """(type, name, description) of every note."""
    if elf[:6] != b"\x7fELF\x02\x01" or len(elf) < 64:
        raise MetadataError("not a little-endian ELF64 file")
    (machine,) = struct.unpack_from("<H", elf, 18)
    if machine != _EM_AMDGPU:
        raise MetadataError(f"an ELF file for machine {machine}, not AMDGPU ({_EM_AMDGPU})")
    (table_offset,) = struct.unpack_from("<Q", elf, 40)
    entry_size, entry_count = struct.unpack_from("<HH", elf, 58)
    notes = []
    for number in range(entry_count):
        at = table_offset + number * entry_size
        (section_type,) = struct.unpack_from("<I", elf, at + 4)
        if section_type != _SHT_NOTE:
            continue
        position, size = struct.unpack_from("<QQ", elf, at + 24)
        end = position + size
        while position < end:
            name_size, description_size, kind = struct.unpack_from("<III", elf, position)
            name_at = position + 12
            description_at = name_at + _padded(name_size)
            notes.append(
                (
                    kind,
                    elf[name_at : name_at + name_size],
                    elf[description_at : description_at + description_size],
                )
            )
            position = description_at + _padded(description_size)
    return notes


def _padded(size: int) -> int:
    return (size + 3) // 4 * 4


# MessagePack's types with a fixed size: marker -> struct format.
_FIXED = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
# Those with a length in front: marker -> format of the length.
_STRINGS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_ARRAYS = {0xDC: ">H", 0xDD: ">I"}
_MAPS = {0xDE: ">H", 0xDF: ">I"}


def _unpack(data: bytes, at: int) -> tuple[Any, int]:
    """The MessagePack value at a position, and the position behind it."""
    marker = data[at]
    at += 1
    if marker <= 0x7F:
        return marker, at
    if marker >= 0xE0:
        return marker - 0x100, at
    if marker <= 0x8F:
        return _unpack_map(data, at, marker & 0x0F)
    if marker <= 0x9F:
        return _unpack_array(data, at, marker & 0x0F)
    if marker <= 0xBF:
        size = marker & 0x1F
        return data[at : at + size].decode(), at + size
    if marker in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[marker], at
    if marker in _FIXED:
        (value,) = struct.unpack_from(_FIXED[marker], data, at)
        return value, at + struct.calcsize(_FIXED[marker])
    for table, unpack in ((_STRINGS, None), (_ARRAYS, _unpack_array), (_MAPS, _unpack_map)):
        if marker in table:
            (size,) = struct.unpack_from(table[marker], data, at)
            at += struct.calcsize(table[marker])
            if unpack is None:
                return data[at : at + size].decode(), at + size
            return unpack(data, at, size)
    raise MetadataError(f"MessagePack type {marker:#x} does not occur in AMDGPU metadata")


def _unpack_array(data: bytes, at: int, size: int) -> tuple[list[Any], int]:
    result = []
    for _ in range(size):
        value, at = _unpack(data, at)
        result.append(value)
    return result, at


def _unpack_map(data: bytes, at: int, size: int) -> tuple[dict[Any, Any], int]:
    result = {}
    for _ in range(size):
        key, at = _unpack(data, at)
        result[key], at = _unpack(data, at)
    return result, at
