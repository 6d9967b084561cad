# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""AMDGPU code objects: ELF sections and symbols, kernel descriptors, metadata notes.

The formats are those of LLVM's "User Guide for AMDGPU Backend", code object V5:
kernel descriptor (64 bytes at `<kernel>.kd`), NT_AMDGPU_METADATA note in MessagePack.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import Any

from gfxemu.errors import CodeObjectError

# EF_AMDGPU_MACH values of e_flags for the targets this emulator implements.
_MACHINES = {0x4C: "gfx942", 0x4F: "gfx950"}
_EM_AMDGPU = 224
_NT_AMDGPU_METADATA = 32


@dataclasses.dataclass(frozen=True)
class KernelDescriptor:
    """The fields of a 64-byte kernel descriptor that matter to execution."""

    group_segment_size: int  # LDS bytes, static
    private_segment_size: int  # scratch bytes per lane
    kernarg_size: int
    entry: int  # address of the first instruction
    vgprs: int  # architectural and accumulation registers together
    accum_offset: int  # index of a0 in the unified register file
    sgprs: int
    float_mode: int  # MODE[7:0] at start: round and denormal controls
    dx10_clamp: bool
    ieee: bool
    user_sgprs: int
    workgroup_id: tuple[bool, bool, bool]
    workitem_id_dims: int  # 1..3: how many of x, y, z are packed into v0
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

    def kernel(self, symbol: str) -> Kernel:
        """The kernel of that name (with or without `.kd`); unknown names list the known ones."""
        name = symbol.removesuffix(".kd")
        if name not in self.kernels:
            known = ", ".join(sorted(self.kernels)) or "none"
            raise CodeObjectError(f"no kernel {name!r} in this code object; it has: {known}")
        return self.kernels[name]


def parse(data: bytes) -> CodeObject:
    """Parse a code object. Raises CodeObjectError for anything but gfx942 and gfx950 ELF."""
    if data[:4] != b"\x7fELF" or len(data) < 64 or data[4] != 2:
        raise CodeObjectError("not a 64-bit ELF file (is it still packed, or a bundle?)")
    machine, flags = struct.unpack_from("<H", data, 18)[0], struct.unpack_from("<I", data, 48)[0]
    if machine != _EM_AMDGPU or flags & 0xFF not in _MACHINES:
        raise CodeObjectError(
            f"ELF machine {machine} flags {flags:#x}; supported: {sorted(_MACHINES.values())}"
        )
    sections = _sections(data)
    metadata = _metadata(data, sections)
    by_symbol = {k[".symbol"].removesuffix(".kd"): k for k in metadata.get("amdhsa.kernels", ())}
    symbols = _symbols(data, sections)
    image = _image(data, sections)
    kernels = {}
    for symbol, (address, _) in symbols.items():
        if not symbol.endswith(".kd"):
            continue
        name = symbol[:-3]
        raw = _read(data, sections, address, 64)
        descriptor = _descriptor(raw, address)
        size = symbols[name][1] if name in symbols else 0
        code = _read(data, sections, descriptor.entry, size)
        kernels[name] = Kernel(name, descriptor, code, by_symbol.get(name, {}), image)
    return CodeObject(_MACHINES[flags & 0xFF], kernels)


@dataclasses.dataclass(frozen=True)
class _Section:
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int


def _sections(data: bytes) -> list[_Section]:
    offset = struct.unpack_from("<Q", data, 40)[0]
    size, count = struct.unpack_from("<HH", data, 58)
    out = []
    for i in range(count):
        _, kind, flags, address, start, length, link = struct.unpack_from(
            "<IIQQQQI", data, offset + i * size
        )
        out.append(_Section(kind, flags, address, start, length, link))
    return out


def _image(data: bytes, sections: list[_Section]) -> bytes:
    loaded = [s for s in sections if s.flags & 2]  # SHF_ALLOC
    image = bytearray(max((s.address + s.size for s in loaded), default=0))
    for s in loaded:
        if s.type != 8:  # SHT_NOBITS
            image[s.address : s.address + s.size] = data[s.offset : s.offset + s.size]
    return bytes(image)


def _read(data: bytes, sections: list[_Section], address: int, size: int) -> bytes:
    for s in sections:
        nobits = s.type == 8
        if (
            s.address
            and not nobits
            and s.address <= address
            and address + size <= s.address + s.size
        ):
            start = s.offset + address - s.address
            return data[start : start + size]
    raise CodeObjectError(f"address {address:#x} (+{size}) lies in no section")


def _symbols(data: bytes, sections: list[_Section]) -> dict[str, tuple[int, int]]:
    out = {}
    for s in sections:
        if s.type not in (2, 11):  # SHT_SYMTAB, SHT_DYNSYM
            continue
        strings = sections[s.link]
        for at in range(s.offset, s.offset + s.size, 24):
            name, _, _, _, value, size = struct.unpack_from("<IBBHQQ", data, at)
            if name:
                start = strings.offset + name
                out[data[start : data.index(b"\0", start)].decode()] = (value, size)
    return out


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
        sgprs=128,
        float_mode=(rsrc1 >> 12) & 0xFF,
        dx10_clamp=bool(rsrc1 >> 21 & 1),
        ieee=bool(rsrc1 >> 23 & 1),
        user_sgprs=(rsrc2 >> 1) & 0x1F,
        workgroup_id=(bool(rsrc2 >> 7 & 1), bool(rsrc2 >> 8 & 1), bool(rsrc2 >> 9 & 1)),
        workitem_id_dims=min((rsrc2 >> 11 & 3) + 1, 3),
        enabled=frozenset(n for n, bit, _ in _USER_SGPRS if properties >> bit & 1),
        kernarg_preload=preload & 0x7F,
    )


def _metadata(data: bytes, sections: list[_Section]) -> dict[str, Any]:
    for s in sections:
        if s.type != 7:  # SHT_NOTE
            continue
        at = s.offset
        while at < s.offset + s.size:
            name_size, size, kind = struct.unpack_from("<III", data, at)
            at += 12 + (name_size + 3 & ~3)
            if kind == _NT_AMDGPU_METADATA:
                return unpack_message(data[at : at + size])
            at += size + 3 & ~3
    return {}


def unpack_message(data: bytes) -> Any:
    """Decode one MessagePack value (the subset metadata notes use: no extension types)."""
    value, end = _unpack(data, 0)
    if end > len(data):
        raise CodeObjectError("truncated metadata note")
    return value


def _unpack(d: bytes, i: int) -> tuple[Any, int]:
    tag = d[i]
    i += 1
    if tag < 0x80:
        return tag, i
    if tag < 0x90:
        return _unpack_map(d, i, tag & 0xF)
    if tag < 0xA0:
        return _unpack_array(d, i, tag & 0xF)
    if tag < 0xC0:
        return d[i : i + (tag & 0x1F)].decode(), i + (tag & 0x1F)
    if tag >= 0xE0:
        return tag - 256, i
    if tag in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[tag], i
    numbers = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
               0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}  # fmt: skip
    if tag in numbers:
        return struct.unpack_from(numbers[tag], d, i)[0], i + struct.calcsize(numbers[tag])
    lengths = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xD9: ">B", 0xDA: ">H", 0xDB: ">I",
               0xDC: ">H", 0xDD: ">I", 0xDE: ">H", 0xDF: ">I"}  # fmt: skip
    if tag not in lengths:
        raise CodeObjectError(f"metadata note: unknown MessagePack tag {tag:#x}")
    length = struct.unpack_from(lengths[tag], d, i)[0]
    i += struct.calcsize(lengths[tag])
    if tag in (0xDC, 0xDD):
        return _unpack_array(d, i, length)
    if tag in (0xDE, 0xDF):
        return _unpack_map(d, i, length)
    raw = d[i : i + length]
    return (raw if tag <= 0xC6 else raw.decode()), i + length


def _unpack_array(d: bytes, i: int, count: int) -> tuple[list[Any], int]:
    out = []
    for _ in range(count):
        value, i = _unpack(d, i)
        out.append(value)
    return out, i


def _unpack_map(d: bytes, i: int, count: int) -> tuple[dict[Any, Any], int]:
    out = {}
    for _ in range(count):
        key, i = _unpack(d, i)
        out[key], i = _unpack(d, i)
    return out, i
