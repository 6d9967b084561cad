# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""What a shared object needs and exports, read from its dynamic section (ELF64, little-endian)."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator

_DT_NEEDED = 1
_SHT_DYNAMIC, _SHT_DYNSYM, _SHT_GNU_VERNEED = 6, 11, 0x6FFFFFFE
_SHN_UNDEF = 0
_STB_LOCAL = 0


class ElfError(Exception):
    """The bytes are no ELF64 little-endian file."""


@dataclasses.dataclass(frozen=True)
class _Section:
    kind: int
    offset: int
    size: int
    link: int
    info: int


@dataclasses.dataclass(frozen=True)
class SharedObject:
    """The linker's view of a shared object.

    needed: sonames that the loader looks for (DT_NEEDED), in its order
    versions: (soname, symbol version) that it must find there: ("libc.so.6", "GLIBC_2.34")
    exported: dynamic symbols that are defined, sorted
    """

    needed: tuple[str, ...]
    versions: frozenset[tuple[str, str]]
    exported: tuple[str, ...]


def _string(data: bytes, offset: int) -> str:
    return data[offset : data.index(b"\0", offset)].decode()


def _sections(data: bytes) -> list[_Section]:
    (start,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = []
    for i in range(count):
        fields = struct.unpack_from("<IIQQQQIIQQ", data, start + i * size)
        sections.append(_Section(fields[1], fields[4], fields[5], fields[6], fields[7]))
    return sections


def _needed(data: bytes, dynamic: _Section, strings: _Section) -> Iterator[str]:
    for offset in range(dynamic.offset, dynamic.offset + dynamic.size, 16):
        tag, value = struct.unpack_from("<qQ", data, offset)
        if tag == _DT_NEEDED:
            yield _string(data, strings.offset + value)


def _versions(data: bytes, section: _Section, strings: _Section) -> Iterator[tuple[str, str]]:
    need = section.offset
    for _ in range(section.info):
        _, count, file, first, next_need = struct.unpack_from("<HHIII", data, need)
        soname = _string(data, strings.offset + file)
        entry = need + first
        for _ in range(count):
            _, _, _, name, next_entry = struct.unpack_from("<IHHII", data, entry)
            yield soname, _string(data, strings.offset + name)
            entry += next_entry
        need += next_need


def _exported(data: bytes, symbols: _Section, strings: _Section) -> Iterator[str]:
    for offset in range(symbols.offset, symbols.offset + symbols.size, 24):
        name, info, _, section = struct.unpack_from("<IBBH", data, offset)
        if section != _SHN_UNDEF and info >> 4 != _STB_LOCAL:
            yield _string(data, strings.offset + name)


def read(data: bytes) -> SharedObject:
    """Raises ElfError for anything but an ELF64 little-endian file with section headers."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ElfError(f"no ELF64 little-endian file: it starts with {data[:6]!r}")
    sections = _sections(data)
    if not sections:
        raise ElfError("the section headers are stripped; link without --strip-sections")
    needed: list[str] = []
    versions: set[tuple[str, str]] = set()
    exported: list[str] = []
    for section in sections:
        if section.kind == _SHT_DYNAMIC:
            needed += _needed(data, section, sections[section.link])
        elif section.kind == _SHT_GNU_VERNEED:
            versions.update(_versions(data, section, sections[section.link]))
        elif section.kind == _SHT_DYNSYM:
            exported += _exported(data, section, sections[section.link])
    return SharedObject(tuple(needed), frozenset(versions), tuple(sorted(exported)))
