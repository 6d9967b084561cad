# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The table of AITER's assembly kernels: objects, their arguments and grids.

The table's text is in TOML files (forward.toml, backward.toml), each of which describes families of
objects, and defects.toml. `read` expands them, and `check` holds each object's description against
the metadata in its file.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import io
import itertools
import struct
from collections.abc import Collection, Mapping
from typing import Any, Protocol

import tomllib
from elftools.elf.elffile import ELFFile

from kernels.code_object.metadata import MetadataError, read_metadata
from kernels.launch_table.traits import TABLE

# Kind of an argument -> its format for struct, and the size and kind in metadata.
_KINDS = {
    "pointer": ("Q", 8, "global_buffer"),
    "untyped_pointer": ("Q", 4, "by_value"),  # which metadata has as a number of four bytes
    "u32": ("I", 4, "by_value"),
    "i32": ("i", 4, "by_value"),
    "f32": ("f", 4, "by_value"),
}
# The name in metadata of what fills slots.
_PADDING = "pad"

# The sections of a table. The first must be there, once; the others add up over files.
_SECTIONS = ("elf_machine", "family", "layout", "left_out", "missing", "defect")

# Traits that a family has one value of, or several with their suffixes in names; and their values.
_CHOICES = {
    "arch": (),  # those of elf_machine
    "mask": ("none", "causal", "causal_top_left", "window"),
    "mode": ("batch", "group"),
    "accumulator": ("none", "a16", "a32"),
    "padding": ("none", "seqlen", "head", "both"),
    "schedule": ("any", "mi300", "mi308"),
}
_FIXED = {"head_size_qk", "head_size_v", "tile_q", "tile_k", "block", "lds"}
_VALUES = {
    "direction": ("forward", "backward", "dq_shuffle"),
    "tiles_of": ("q", "k"),
}
_FAMILY = {*_CHOICES, *_FIXED, *_VALUES, "rounding", "layout", "name", "symbol", "folder",
           "shuffle", "multiple", "grid", "tiles_per_workgroup"}  # fmt: skip
# Ways in which a launch avoids a defect.
AVOIDED_BY = {
    "": "no way is known",
    "tiles_as_sequences": "each tile is a sequence of its own, in group mode: split.py",
    "numbers_behind": "lse and delta are followed by 64 finite numbers",
    "packed_inputs": "heads, tokens and batches follow each other without gaps",
    "zeroed_dk_dv": "dk and dv are zero before",
    "filled_rows": "o and lse of sequences without keys are filled behind it: kernels/no_keys",
}
_ROUNDINGS = ("rtne", "rtna", "rtz", "none")
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
class Defect:
    """A defect of objects, by its letter in docs/asm-findings.md. `when` is a hazard of
    launch_table/traits.toml, `avoided_by` a key of AVOIDED_BY. The last two are signatures of the
    emulator's findings: those that show it, and others that may come with them."""

    letter: str
    objects: tuple[str, ...]
    when: str
    changes_results: bool
    avoided_by: str
    findings: tuple[str, ...]
    accompanied_by: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class AsmObject:
    """One object: a kernel of AITER's.

    name         the stem of its file, in `folder` of the wheel's objects
    direction    forward; backward (dq, dk, dv); dq_shuffle, which makes dq of a backward kernel's
                 16-bit sums
    elf_machine  the arch in an ELF file's flags
    dtype        fp16, bf16; 16bit for a kernel that moves either
    head_size_*  of a token's head, the largest where `padding` is of heads
    mask         none, causal (aligned to the bottom right), causal_top_left, window
    mode         batch, group
    rounding     of float32 to dtype: rtne (nearest, ties to even), rtna (ties away), rtz (toward
                 zero), none
    schedule     of compute units: mi300, mi308, any
    accumulator  of dq: a16 (adds in the dtype), a32 (in float32), none
    padding      which sizes may be other than the tiles': seqlen, head, both, none
    tiles_of     the sequence that a grid's `tiles` divide: q, k
    tile_q, _k   rows; `block` is work-items, `lds` bytes
    grid         the dimensions' names, x first
    multiple     what lengths must be multiples of, where `padding` is not of them
    shuffle      the object that has to finish dq, "" if none has to
    defects      that are known of it
    """

    name: str
    symbol: str
    folder: str
    direction: str
    arch: str
    elf_machine: int
    dtype: str
    head_size_qk: int
    head_size_v: int
    mask: str
    mode: str
    rounding: str
    schedule: str
    accumulator: str
    padding: str
    tiles_of: str
    tile_q: int
    tile_k: int
    block: int
    lds: int
    layout: Layout
    grid: tuple[str, ...]
    tiles_per_workgroup: int
    multiple: int
    shuffle: str
    defects: tuple[Defect, ...]

    @property
    def file(self) -> str:
        """Path in the wheel's folder of objects."""
        return f"{self.folder}/{self.name}.co"

    @property
    def pads_seqlen(self) -> bool:
        return self.padding in ("seqlen", "both")

    @property
    def pads_head(self) -> bool:
        return self.padding in ("head", "both")

    def workgroups(self, longest: int, heads_q: int, batch: int) -> tuple[int, ...]:
        """The grid of a problem, x first. `longest` is the longest sequence of `tiles_of`."""
        tile = {"q": self.tile_q, "k": self.tile_k}[self.tiles_of]
        tiles = -(-longest // (tile * self.tiles_per_workgroup))
        sizes = {"tiles": tiles, "heads_q": heads_q, "batch": batch}
        return tuple(sizes[name] for name in self.grid)

    def option(self, longest_q: int, heads_q: int) -> int:
        """The mapping of a forward kernel's workgroups to tiles and heads: the argument `option`.

        5 is right for multiples of 8 heads alone where the object has a mask: it maps others to
        rows that do not exist.
        """
        return 3 if self.mask == "causal" and (heads_q % 8 or longest_q > 16384) else 5


@dataclasses.dataclass(frozen=True)
class Table:
    """All objects; and by file, with the reason: `left_out`, those of the same folders that are
    not described, and `missing`, those that AITER's code names and its wheel does not have."""

    objects: tuple[AsmObject, ...]
    left_out: Mapping[str, str]
    missing: Mapping[str, str]


def keys(where: str, entry: Mapping[str, Any], wanted: set[str]) -> None:
    if entry.keys() != wanted:
        raise TableError(
            f"{where}: missing {sorted(wanted - entry.keys())}, unknown "
            f"{sorted(entry.keys() - wanted)}"
        )


def one_of(where: str, value: str, choices: Collection[str]) -> None:
    if value not in choices:
        raise TableError(f"{where} {value!r}; use {', '.join(choices)}")


def layout(name: str, entry: Mapping[str, Any]) -> Layout:
    where = f"layout {name}"
    keys(where, entry, {"size", "arguments"})
    arguments = []
    for argument, about in entry["arguments"].items():
        keys(f"{where}: {argument}", about, {"metadata", "offset", "kind"})
        one_of(f"{where}: {argument}: kind", about["kind"], _KINDS)
        arguments.append(Argument(argument, **about))
    for before, after in itertools.pairwise(arguments):
        if before.offset + before.size > after.offset:
            raise TableError(f"{where}: {after.name} overlaps {before.name}")
    if arguments[-1].offset + arguments[-1].size > entry["size"]:
        raise TableError(f"{where}: {arguments[-1].name} is beyond its {entry['size']} bytes")
    return Layout(name, entry["size"], tuple(arguments))


def _choices(where: str, entry: Mapping[str, Any], archs: Collection[str]) -> list[dict[str, Any]]:
    """Each combination of a family's choices: trait -> (value, suffix)."""
    axes = []
    for trait, allowed in _CHOICES.items():
        values = entry[trait] if isinstance(entry[trait], dict) else {entry[trait]: ""}
        for value in values:
            one_of(f"{where}: {trait}", value, allowed or archs)
        axes.append([{trait: chosen} for chosen in values.items()])
    numbers = []
    for dtype, roundings in entry["rounding"].items():
        for rounding in roundings:
            one_of(f"{where}: rounding.{dtype}", rounding, _ROUNDINGS)
        numbers += [{"dtype": (dtype, dtype), "rounding": r} for r in roundings.items()]
    axes.append(numbers)
    return [
        {name: chosen for part in parts for name, chosen in part.items()}
        for parts in itertools.product(*axes)
    ]


def _defect(letter: str, entry: Mapping[str, Any]) -> Defect:
    where = f"defect {letter}"
    optional: dict[str, Any] = {"findings": (), "accompanied_by": ()}
    entry = optional | dict(entry)
    keys(where, entry, {field.name for field in dataclasses.fields(Defect)} - {"letter"})
    one_of(f"{where}: when", entry["when"], TABLE.hazards)
    one_of(f"{where}: avoided_by", entry["avoided_by"], AVOIDED_BY)
    lists = ("objects", "findings", "accompanied_by")
    return Defect(letter, **(dict(entry) | {name: tuple(entry[name]) for name in lists}))


def _with_defects(objects: list[AsmObject], defects: list[Defect]) -> list[AsmObject]:
    """Raises TableError for a pattern that no object fits."""
    for defect in defects:
        for pattern in defect.objects:
            if not any(fnmatch.fnmatchcase(o.file, pattern) for o in objects):
                raise TableError(f"defect {defect.letter}: no object is {pattern}")
    return [
        dataclasses.replace(
            described,
            defects=tuple(
                defect
                for defect in defects
                if any(fnmatch.fnmatchcase(described.file, p) for p in defect.objects)
            ),
        )
        for described in objects
    ]


def _family(
    name: str, entry: Mapping[str, Any], machines: Mapping[str, int], layouts: Mapping[str, Layout]
) -> list[AsmObject]:
    where = f"family {name}"
    optional: dict[str, Any] = {"shuffle": "", "multiple": 1}
    entry = optional | dict(entry)
    keys(where, entry, _FAMILY)
    one_of(f"{where}: layout", entry["layout"], layouts)
    for key, allowed in _VALUES.items():
        one_of(f"{where}: {key}", entry[key], allowed)
    combinations = _choices(where, entry, machines)
    for mode, grid in entry["grid"].items():
        if sorted(grid) != sorted(_DIMENSIONS):
            raise TableError(f"{where}: grid.{mode} is {grid}; it orders {', '.join(_DIMENSIONS)}")
    for key, trait in (("grid", "mode"), ("tiles_per_workgroup", "mask")):
        keys(f"{where}: {key}", entry[key], {chosen[trait][0] for chosen in combinations})
    objects = []
    for combination in combinations:
        values = {trait: value for trait, (value, _) in combination.items()}
        suffixes = {trait: suffix for trait, (_, suffix) in combination.items()}
        stem = entry["name"].format(**suffixes)
        function = entry["symbol"].format(name=stem, **suffixes)
        shuffled = entry["shuffle"] if values["accumulator"] == "a16" else ""
        objects.append(
            AsmObject(
                name=stem,
                # aiter::FUNCTION, mangled
                symbol=f"_ZN5aiter{len(function)}{function}E",
                folder=f"{values['arch']}/" + entry["folder"].format(**suffixes),
                elf_machine=machines[values["arch"]],
                layout=layouts[entry["layout"]],
                grid=tuple(entry["grid"][values["mode"]]),
                tiles_per_workgroup=entry["tiles_per_workgroup"][values["mask"]],
                multiple=entry["multiple"],
                shuffle=shuffled.format(**suffixes),
                defects=(),
                **values,
                **{key: entry[key] for key in (*_FIXED, *_VALUES)},
            )
        )
    return objects


def read_table(*texts: str) -> Table:
    """The table that files (TOML) make together. Raises TableError."""
    table: dict[str, dict[str, Any]] = {section: {} for section in _SECTIONS}
    for text in texts:
        for section, entries in tomllib.loads(text).items():
            one_of("section", section, _SECTIONS)
            if twice := sorted(table[section].keys() & entries.keys()):
                raise TableError(f"{section}: {', '.join(twice)}: in two files")
            table[section] |= entries
    if not table["elf_machine"]:
        raise TableError("the table has no section elf_machine")
    layouts = {name: layout(name, entry) for name, entry in table["layout"].items()}
    objects: dict[str, AsmObject] = {}
    for name, entry in table["family"].items():
        for described in _family(name, entry, table["elf_machine"], layouts):
            if described.file in objects:
                raise TableError(f"family {name}: {described.file} is described twice")
            objects[described.file] = described
    reasons = {
        section: {file: reason for reason, files in table[section].items() for file in files}
        for section in ("left_out", "missing")
    }
    for section, left in reasons.items():
        if both := sorted(objects.keys() & left.keys()):
            raise TableError(f"{section}: {', '.join(both)}: described")
    for described in objects.values():
        shuffle = f"{described.folder}/{described.shuffle}.co"
        if described.shuffle and objects.get(shuffle, described).direction != "dq_shuffle":
            raise TableError(f"{described.file}: no object of dq_shuffle is {shuffle}")
    defects = [_defect(letter, entry) for letter, entry in table["defect"].items()]
    known = _with_defects(list(objects.values()), defects)
    return Table(tuple(known), reasons["left_out"], reasons["missing"])


def read(*texts: str) -> list[AsmObject]:
    """The objects of a table. Raises TableError."""
    return list(read_table(*texts).objects)


class Described(Protocol):
    """A description of an object, as metadata can contradict it."""

    @property
    def file(self) -> str: ...
    @property
    def symbol(self) -> str: ...
    @property
    def elf_machine(self) -> int: ...
    @property
    def layout(self) -> Layout: ...
    @property
    def block(self) -> int: ...
    @property
    def lds(self) -> int: ...


def check(described: Described, code: bytes) -> None:
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


def compare(described: Described, machine: int, kernel: Mapping[str, Any]) -> None:
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
    wanted = [(a.metadata, a.offset, *_KINDS[a.kind][1:]) for a in described.layout.arguments]
    real = (a for a in arguments if a[0] != _PADDING)
    for actual, expected in itertools.zip_longest(real, wanted):
        if actual != expected:
            raise TableError(
                f"{where}: argument {actual}, the table says {expected} (name, offset, size, kind)"
            )
