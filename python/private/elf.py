# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Needs and exports of a shared object (ELF64, little-endian)."""

from __future__ import annotations

import dataclasses
import io

from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from elftools.elf.sections import SymbolTableSection


class ElfError(Exception):
    """The bytes are no ELF64 little-endian file."""


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


def read(data: bytes) -> SharedObject:
    """Raises ElfError for anything but an ELF64 little-endian file with section headers."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ElfError(f"no ELF64 little-endian file: it starts with {data[:6]!r}")
    try:
        return _read(ELFFile(io.BytesIO(data)))
    except (ConstructError, ELFError) as error:
        raise ElfError(f"malformed: {error}") from error


def _read(elf: ELFFile) -> SharedObject:
    if elf.num_sections() == 0:
        raise ElfError("the section headers are stripped; link without --strip-sections")
    needed: list[str] = []
    versions: set[tuple[str, str]] = set()
    exported: list[str] = []
    for section in elf.iter_sections():
        if isinstance(section, DynamicSection):
            needed += (tag.needed for tag in section.iter_tags("DT_NEEDED"))
        elif isinstance(section, GNUVerNeedSection):
            for library, symbols in section.iter_versions():
                versions.update((library.name, symbol.name) for symbol in symbols)
        elif isinstance(section, SymbolTableSection) and section["sh_type"] == "SHT_DYNSYM":
            exported += (
                symbol.name
                for symbol in section.iter_symbols()
                if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] != "STB_LOCAL"
            )
    return SharedObject(tuple(needed), frozenset(versions), tuple(sorted(exported)))
