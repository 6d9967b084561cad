# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""AMDGPU code objects: ELF sections and symbols, kernel descriptors, metadata notes.

The formats are those of LLVM's "User Guide for AMDGPU Backend", code object V5:
kernel descriptor (64 bytes at `<kernel>.kd`), NT_AMDGPU_METADATA note in MessagePack. Kernels
written by hand may leave out what a compiler states: without a symbol's size the code goes on to
the end of its section, and without a size of kernel arguments in the descriptor the metadata has
it.
"""

from __future__ import annotations

import dataclasses
import io
import struct
from typing import Any

import msgpack
from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, Section, SymbolTableSection

from gfxemu.errors import CodeObjectError

# EF_AMDGPU_MACH values of e_flags for the targets this emulator implements.
_MACHINES = {0x3F: "gfx90a", 0x4C: "gfx942", 0x4F: "gfx950"}
_NT_AMDGPU_METADATA = 32

# Exceptions that the readers of ELF and of MessagePack raise for bytes that are neither.
_DAMAGED = (
    ConstructError,
    ELFError,
    KeyError,
    TypeError,
    ValueError,
    struct.error,
    msgpack.UnpackException,
)


@dataclasses.dataclass(frozen=True)
class KernelDescriptor:
    """The fields of a 64-byte kernel descriptor that matter to execution."""

    group_segment_size: int  # LDS bytes, static
    private_segment_size: int  # scratch bytes per lane
    kernarg_size: int
    entry: int  # address of the first instruction
    vgprs: int  # architectural and accumulation registers together
    accum_offset: int  # index of a0 in the unified register file
    float_mode: int  # MODE[7:0] at start: round and denormal controls
    user_sgprs: int
    workgroup_id: tuple[bool, bool, bool]
    enabled: frozenset[str]  # names of _USER_SGPRS
    kernarg_preload: int

    @property
    def flush_f32_denormals(self) -> bool:
        return (self.float_mode >> 4) & 3 == 0


# kernel_code_properties bits in the order their user SGPRs are laid out, with their sizes.
_USER_SGPRS = (
    ("private_segment_buffer", 0, 4),
    ("dispatch_ptr", 1, 2),
    ("queue_ptr", 2, 2),
    ("kernarg_segment_ptr", 3, 2),
    ("dispatch_id", 4, 2),
    ("flat_scratch_init", 5, 2),
    ("private_segment_size", 6, 1),
)


def user_sgpr_layout(descriptor: KernelDescriptor) -> list[tuple[str, int, int]]:
    """(name, first SGPR, count) of every enabled user SGPR field, in order."""
    layout, first = [], 0
    for name, _, count in _USER_SGPRS:
        if name in descriptor.enabled:
            layout.append((name, first, count))
            first += count
    return layout


@dataclasses.dataclass(frozen=True)
class Kernel:
    name: str
    descriptor: KernelDescriptor
    code: bytes
    metadata: dict[str, Any]
    image: bytes = b""  # all of the code object as it lies in memory, from address 0

    def hidden_arguments(self) -> list[tuple[str, int, int]]:
        """(value kind, offset, size) of the hidden arguments the kernel declares."""
        return [
            (a[".value_kind"], a[".offset"], a[".size"])
            for a in self.metadata.get(".args", ())
            if a[".value_kind"].startswith("hidden_")
        ]


@dataclasses.dataclass(frozen=True)
class CodeObject:
    arch: str
    kernels: dict[str, Kernel]
    image: bytes = b""
    variables: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)  # address, size

    def kernel(self, symbol: str) -> Kernel:
        """The kernel of that name (with or without `.kd`); unknown names list the known ones."""
        name = symbol.removesuffix(".kd")
        if name not in self.kernels:
            known = ", ".join(sorted(self.kernels)) or "none"
            raise CodeObjectError(f"no kernel {name!r} in this code object; it has: {known}")
        return self.kernels[name]


def parse(data: bytes) -> CodeObject:
    """Parse a code object. Raises CodeObjectError for what is not one of a known arch."""
    try:
        return _parse(ELFFile(io.BytesIO(data)))
    except _DAMAGED as error:
        raise CodeObjectError(
            f"not an ELF code object (is it still packed, or a bundle?): {error!r}"
        ) from error


def _parse(elf: ELFFile) -> CodeObject:
    arch = _MACHINES.get(elf["e_flags"] & 0xFF)
    if elf["e_machine"] != "EM_AMDGPU" or arch is None:
        raise CodeObjectError(
            f"ELF machine {elf['e_machine']} flags {elf['e_flags']:#x}; "
            f"supported: {sorted(_MACHINES.values())}"
        )
    sections = list(elf.iter_sections())
    metadata = _metadata(sections)
    by_symbol = {k[".symbol"].removesuffix(".kd"): k for k in metadata.get("amdhsa.kernels", ())}
    entries = [
        symbol
        for section in sections
        if isinstance(section, SymbolTableSection)
        for symbol in section.iter_symbols()
    ]
    symbols = {symbol.name: (symbol["st_value"], symbol["st_size"]) for symbol in entries}
    image = _image(sections)
    kernels = {}
    for symbol, (address, _) in symbols.items():
        if not symbol.endswith(".kd"):
            continue
        name = symbol.removesuffix(".kd")
        descriptor = _descriptor(_read(image, address, 64), address)
        own = by_symbol.get(name, {})
        if not descriptor.kernarg_size:
            size = own.get(".kernarg_segment_size", 0)
            descriptor = dataclasses.replace(descriptor, kernarg_size=size)
        size = symbols.get(name, (0, 0))[1] or _rest_of_section(sections, descriptor.entry)
        code = _read(image, descriptor.entry, size)
        kernels[name] = Kernel(name, descriptor, code, own, image)
    variables = {
        symbol.name: symbols[symbol.name]
        for symbol in entries
        if symbol["st_info"]["type"] == "STT_OBJECT" and not symbol.name.endswith(".kd")
    }
    return CodeObject(arch, kernels, image, variables)


def _rest_of_section(sections: list[Section], address: int) -> int:
    """Bytes from an address to the end of its section of code."""
    for s in sections:
        if s["sh_flags"] & SH_FLAGS.SHF_EXECINSTR:
            rest = s["sh_addr"] + s["sh_size"] - address
            if 0 < rest <= s["sh_size"]:
                return rest
    return 0


def _image(sections: list[Section]) -> bytes:
    loaded = [s for s in sections if s["sh_flags"] & SH_FLAGS.SHF_ALLOC]
    image = bytearray(max((s["sh_addr"] + s["sh_size"] for s in loaded), default=0))
    for s in loaded:
        if s["sh_type"] != "SHT_NOBITS":
            data = s.data()
            image[s["sh_addr"] : s["sh_addr"] + len(data)] = data
    return bytes(image)


def _read(image: bytes, address: int, size: int) -> bytes:
    if address + size > len(image):
        raise CodeObjectError(f"address {address:#x} (+{size}) is not in the code object")
    return image[address : address + size]


def _descriptor(raw: bytes, address: int) -> KernelDescriptor:
    group, private, kernarg = struct.unpack_from("<III", raw, 0)
    entry = address + struct.unpack_from("<q", raw, 16)[0]
    rsrc3, rsrc1, rsrc2 = struct.unpack_from("<III", raw, 44)
    properties, preload = struct.unpack_from("<HH", raw, 56)
    return KernelDescriptor(
        group_segment_size=group,
        private_segment_size=private,
        kernarg_size=kernarg,
        entry=entry,
        vgprs=((rsrc1 & 0x3F) + 1) * 8,
        accum_offset=((rsrc3 & 0x3F) + 1) * 4,
        float_mode=(rsrc1 >> 12) & 0xFF,
        user_sgprs=(rsrc2 >> 1) & 0x1F,
        workgroup_id=(bool(rsrc2 >> 7 & 1), bool(rsrc2 >> 8 & 1), bool(rsrc2 >> 9 & 1)),
        enabled=frozenset(n for n, bit, _ in _USER_SGPRS if properties >> bit & 1),
        kernarg_preload=preload & 0x7F,
    )


def _metadata(sections: list[Section]) -> dict[str, Any]:
    for section in sections:
        if isinstance(section, NoteSection):
            for note in section.iter_notes():
                if note["n_name"] == "AMDGPU" and note["n_type"] == _NT_AMDGPU_METADATA:
                    return msgpack.unpackb(note["n_descdata"])
    return {}
