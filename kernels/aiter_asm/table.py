# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The table of AITER's assembly kernels: objects, their arguments and grids.

A table (forward.toml) describes families of objects; `read` expands them, and `check` holds each
object's description against the metadata in its file.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
import struct
from collections.abc import Mapping
from typing import Any

import tomllib
from elftools.elf.elffile import ELFFile

from kernels.code_object.describe import MetadataError, read_metadata

# Kind of an argument -> its format for struct, and the kind in metadata.
_KINDS = {"pointer": ("Q", "global_buffer"), "u32": ("I", "by_value"), "f32": ("f", "by_value")}
# The name in metadata of what fills slots.
_PADDING = "pad"
_CHOICES = ("mask", "mode", "rounding", "schedule")
_FAMILY = {"arch", "dtype", "head_size_qk", "head_size_v", "tile_q", "tile_k", "block", "lds",
           "layout", "name", "folder", "grid", "tiles_per_workgroup", *_CHOICES}  # fmt: skip
_DIMENSIONS = ("tiles", "heads_q", "batch")


class TableError(Exception):
    """A table that is not as it must be, or an object that is not as its table says."""


@dataclasses.dataclass(frozen=True)
class Argument:
    """A kernel argument: its name here and in metadata, its offset in bytes, a key of _KINDS."""

    name: str
    metadata: str
    offset: int
    kind: str

    @property
    def size(self) -> int:
        """Bytes."""
        return struct.calcsize(_KINDS[self.kind][0])


@dataclasses.dataclass(frozen=True)
class Layout:
    """The block of a kernel's arguments, `size` bytes; zeros between the arguments."""

    name: str
    size: int
    arguments: tuple[Argument, ...]

    def pack(self, values: Mapping[str, float]) -> bytes:
        """The block of all arguments. Raises TableError for names that the layout lacks, or that
        `values` lacks, and for values that do not fit."""
        names = {argument.name for argument in self.arguments}
        if names != values.keys():
            raise TableError(
                f"layout {self.name}: missing {sorted(names - values.keys())}, unknown "
                f"{sorted(values.keys() - names)}; its arguments are {sorted(names)}"
            )
        block = bytearray(self.size)
        for argument in self.arguments:
            value = values[argument.name]
            try:
                struct.pack_into("<" + _KINDS[argument.kind][0], block, argument.offset, value)
            except (struct.error, OverflowError) as error:
                raise TableError(
                    f"layout {self.name}: {argument.name} = {value!r} is no {argument.kind}"
                ) from error
        return bytes(block)


@dataclasses.dataclass(frozen=True)
class AsmObject:
    """One object: a kernel of AITER's.

    `name` is the stem of its file, in `folder` of the wheel's objects. `mask` is none or causal
    (bottom right), `mode` batch or group. Tiles are rows, `block` work-items, `lds` bytes. `grid`
    has the dimensions' names, x first. `elf_machine` is the arch in an ELF file's flags.
    """

    name: str
    folder: str
    arch: str
    elf_machine: int
    dtype: str
    head_size_qk: int
    head_size_v: int
    mask: str
    mode: str
    rounding: str
    schedule: str
    tile_q: int
    tile_k: int
    block: int
    lds: int
    layout: Layout
    grid: tuple[str, ...]
    tiles_per_workgroup: int

    @property
    def file(self) -> str:
        """Path in the wheel's folder of objects."""
        return f"{self.folder}/{self.name}.co"

    @property
    def symbol(self) -> str:
        """aiter::fmha_NAME, mangled."""
        function = "fmha_" + self.name
        return f"_ZN5aiter{len(function)}{function}E"

    def workgroups(self, longest_q: int, heads_q: int, batch: int) -> tuple[int, ...]:
        """The grid of a problem, x first."""
        tiles = -(-longest_q // (self.tile_q * self.tiles_per_workgroup))
        sizes = {"tiles": tiles, "heads_q": heads_q, "batch": batch}
        return tuple(sizes[name] for name in self.grid)

    def option(self, longest_q: int, heads_q: int) -> int:
        """The mapping of workgroups to tiles and heads: the argument `option`.

        5 is right for multiples of 8 heads alone where the object has a mask: it maps others to
        rows that do not exist.
        """
        return 3 if self.mask == "causal" and (heads_q % 8 or longest_q > 16384) else 5


def _keys(where: str, entry: Mapping[str, Any], wanted: set[str]) -> None:
    if entry.keys() != wanted:
        raise TableError(
            f"{where}: missing {sorted(wanted - entry.keys())}, unknown "
            f"{sorted(entry.keys() - wanted)}"
        )


def _layout(name: str, entry: Mapping[str, Any]) -> Layout:
    where = f"layout {name}"
    _keys(where, entry, {"size", "arguments"})
    arguments = []
    for argument, about in entry["arguments"].items():
        _keys(f"{where}: {argument}", about, {"metadata", "offset", "kind"})
        if about["kind"] not in _KINDS:
            raise TableError(
                f"{where}: {argument}: kind {about['kind']!r}; use {', '.join(_KINDS)}"
            )
        arguments.append(Argument(argument, **about))
    for before, after in itertools.pairwise(arguments):
        if before.offset + before.size > after.offset:
            raise TableError(f"{where}: {after.name} overlaps {before.name}")
    if arguments[-1].offset + arguments[-1].size > entry["size"]:
        raise TableError(f"{where}: {arguments[-1].name} is beyond its {entry['size']} bytes")
    return Layout(name, entry["size"], tuple(arguments))


def read(text: str) -> list[AsmObject]:
    """The objects of a table (TOML). Raises TableError."""
    table = tomllib.loads(text)
    _keys("table", table, {"elf_machine", "family", "layout"})
    machines = table["elf_machine"]
    layouts = {name: _layout(name, entry) for name, entry in table["layout"].items()}
    objects = []
    for family, entry in table["family"].items():
        where = f"family {family}"
        _keys(where, entry, _FAMILY)
        if entry["layout"] not in layouts:
            raise TableError(f"{where}: layout {entry['layout']!r}; use {', '.join(layouts)}")
        if entry["arch"] not in machines:
            raise TableError(
                f"{where}: arch {entry['arch']!r} has no elf_machine; use {', '.join(machines)}"
            )
        for mode, grid in entry["grid"].items():
            if sorted(grid) != sorted(_DIMENSIONS):
                raise TableError(
                    f"{where}: grid.{mode} is {grid}; it orders {', '.join(_DIMENSIONS)}"
                )
        _keys(f"{where}: grid", entry["grid"], set(entry["mode"]))
        _keys(f"{where}: tiles_per_workgroup", entry["tiles_per_workgroup"], set(entry["mask"]))
        for chosen in itertools.product(*(entry[choice] for choice in _CHOICES)):
            choice = dict(zip(_CHOICES, chosen, strict=True))
            suffixes = {name: entry[name][value] for name, value in choice.items()}
            rest = _FAMILY - {*_CHOICES, "name", "folder", "layout", "grid", "tiles_per_workgroup"}
            objects.append(
                AsmObject(
                    elf_machine=machines[entry["arch"]],
                    name=entry["name"].format(**suffixes),
                    folder=entry["folder"].format(**suffixes),
                    layout=layouts[entry["layout"]],
                    grid=tuple(entry["grid"][choice["mode"]]),
                    tiles_per_workgroup=entry["tiles_per_workgroup"][choice["mask"]],
                    **choice,
                    **{key: entry[key] for key in rest},
                )
            )
    return objects


def check(described: AsmObject, code: bytes) -> None:
    """Holds a description against the metadata of its object.

    Raises TableError, which names the file, what differs and both values.
    """
    try:
        (kernel,) = read_metadata(code)["amdhsa.kernels"]
        machine = ELFFile(io.BytesIO(code))["e_flags"] & 0xFF
    except (MetadataError, KeyError, TypeError, ValueError) as error:
        raise TableError(
            f"{described.file}: not a code object of one kernel with metadata: {error}"
        ) from error
    compare(described, machine, kernel)


def compare(described: AsmObject, machine: int, kernel: Mapping[str, Any]) -> None:
    """The same for what a file says: its ELF flags' machine, and a kernel's metadata."""
    where = described.file
    promised = {
        "ELF machine": described.elf_machine,
        ".symbol": described.symbol + ".kd",
        ".kernarg_segment_size": described.layout.size,
        ".reqd_workgroup_size": [described.block, 1, 1],
        ".group_segment_fixed_size": described.lds,
    }
    found = {"ELF machine": machine, **kernel}
    for name, value in promised.items():
        if found.get(name) != value:
            raise TableError(f"{where}: {name} is {found.get(name)!r}, the table says {value!r}")
    fields = (".name", ".offset", ".size", ".value_kind")
    arguments = [tuple(a.get(field) for field in fields) for a in kernel.get(".args", ())]
    wanted = [(a.metadata, a.offset, a.size, _KINDS[a.kind][1]) for a in described.layout.arguments]
    real = (a for a in arguments if a[0] != _PADDING)
    for actual, expected in itertools.zip_longest(real, wanted):
        if actual != expected:
            raise TableError(
                f"{where}: argument {actual}, the table says {expected} (name, offset, size, kind)"
            )
