# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The launch table as one blob: the writer for launch_table.h.

A row, as a mapping: "name", which is also the kernel's symbol unless there is a "symbol", "kind",
"traits", "tile" (by dimension), "head_size_alignment", "block" ({"waves": number} or
{"work_items": number}) and "launch", the C++ function that makes its kernel arguments. A code
object's record: "key"; "spec", a CodeObjectSpec or ForeignSpec, where there is one; "sha256",
"size" and "kernel" (describe.py) where its bytes were built, and "sha256" alone where they were not
and a lock has it; "defects" where some are known: by the name of each, the hazard of traits.toml on
which it makes results wrong, "" where it makes none.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from kernels.archs.archs import block_size
from kernels.code_object.spec import CodeObjectSpec
from kernels.launch_table.traits import TABLE, padded

MAGIC = b"ATTNTBL3"
_HEADER = struct.Struct("<8s7I8I3I")
_ARCH = struct.Struct("<16s")
_ROW = struct.Struct(padded(f"<IIIIH4H{struct.calcsize(TABLE.packed_format())}s", 4))
_OBJECT = struct.Struct("<32s32sQ4H32sII")
_BUCKET = struct.Struct("<BBHHH")
_SLOT = struct.Struct("<QII")
RECORD_SIZES = {
    "TableHeader": _HEADER.size,
    "Arch": _ARCH.size,
    "Row": _ROW.size,
    "CodeObjectRow": _OBJECT.size,
    "Bucket": _BUCKET.size,
    "Slot": _SLOT.size,
}

_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 / the golden ratio: spreads keys over the slots
_NO_CODE_OBJECT: Mapping[str, Any] = {"key": "00" * 32}

Row = Mapping[str, Any]
CodeObjects = Mapping[tuple[str, str], Mapping[str, Any]]


class TableError(Exception):
    """The rows and the code objects do not fit together, or not into a table."""


@dataclasses.dataclass(frozen=True)
class LaunchTable:
    """A blob, and the launch functions that its rows number."""

    blob: bytes
    launches: list[str]


class _Strings:
    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, text: str) -> int:
        at = len(self.data)
        self.data += text.encode("ascii") + b"\0"
        return at


def _kernarg_size(name: str, archs: Sequence[str], code_objects: CodeObjects) -> int:
    """Of the instance's kernels, which must agree; 0 where none was built."""
    sizes = {
        arch: code_objects[name, arch]["kernel"]["kernarg_size"]
        for arch in archs
        if "kernel" in code_objects.get((name, arch), {})
    }
    if len(set(sizes.values())) > 1:
        raise TableError(f"{name}: the archs' kernels take other arguments: {sizes}")
    return next(iter(sizes.values()), 0)


def _buckets(rows: Sequence[Row]) -> list[tuple[int, int, int, int, int]]:
    """Head sizes by kind and dtype, in the order of the rows."""
    dtypes = TABLE.enums["Dtype"]
    found: dict[tuple[int, int], dict[tuple[int, int], None]] = {}
    for row in rows:
        traits = row["traits"]
        group = found.setdefault(
            (TABLE.kind_number(row["kind"]), dtypes.get(traits.get("dtype", ""), 0)), {}
        )
        group[traits.get("head_size_qk", 0), traits.get("head_size_v", 0)] = None
    return [(*group, *sizes, 0) for group in sorted(found) for sizes in found[group]]


def _index(keys: Sequence[int]) -> tuple[list[tuple[int, int, int]], list[int]]:
    """Slots (open addressing, linear probing, at most half full) and the rows that they name."""
    by_key: dict[int, list[int]] = {}
    for number, key in enumerate(keys):
        by_key.setdefault(key, []).append(number)
    bits = max(1, (2 * len(by_key) - 1).bit_length())
    slots = [(0, 0, 0)] * (1 << bits)
    slot_rows: list[int] = []
    for key, numbers in by_key.items():
        at = (key * _GOLDEN & (1 << 64) - 1) >> 64 - bits
        while slots[at][2]:
            at = (at + 1) & (1 << bits) - 1
        slots[at] = (key, len(slot_rows), len(numbers))
        slot_rows += numbers
    return slots, slot_rows


def of_archs(rows: Sequence[Row], archs: Sequence[str]) -> list[Row]:
    """The rows that a table for these archs has: those of their targets, if they are of some."""
    return [
        {field: value for field, value in row.items() if field != "targets"}
        for row in rows
        if any(arch.startswith(t) for t in row.get("targets", ("",)) for arch in archs)
    ]


def check_complete(rows: Sequence[Row], code_objects: CodeObjects, archs: Sequence[str]) -> None:
    """Raises TableError unless there is one code object per instance and arch, and no other.

    A row says for which archs it is left out.
    """
    wanted = {
        (row["name"], arch) for row in rows for arch in archs if arch not in row.get("left_out", {})
    }
    for problem, pairs in (
        ("no code object of", wanted - code_objects.keys()),
        ("a code object that no row names:", code_objects.keys() - wanted),
    ):
        if pairs:
            name, arch = sorted(pairs)[0]
            raise TableError(f"{problem} {name} for {arch}")


def check_specified(rows: Sequence[Row], specified: CodeObjects, code_objects: CodeObjects) -> None:
    """Raises TableError unless each kernel that is specified is of a row, and each row has one, on
    some arch, or is compiled on some."""
    names = {row["name"] for row in rows}
    found = {name for name, _ in specified}
    for problem, wrong in (
        ("no spec of", names - found - {name for name, _ in code_objects}),
        ("a spec that no row names:", found - names),
    ):
        if wrong:
            raise TableError(f"{problem} {sorted(wrong)[0]}")


def beside(rows: Sequence[Row], others: Sequence[Row]) -> list[Row]:
    """All of the rows, and of the others those with other names, behind them in each kind."""
    by_kind: dict[str, dict[str, Row]] = {}
    for row in (*rows, *others):
        by_kind.setdefault(row["kind"], {}).setdefault(row["name"], row)
    return [row for of_kind in by_kind.values() for row in of_kind.values()]


def launch_table(
    rows: Sequence[Row], code_objects: CodeObjects, archs: Mapping[str, int], variant_set: str
) -> LaunchTable:
    """The table of rows, in their order, which must have kinds together.

    code_objects  (instance, arch) -> record; where there is none, the arch lacks the instance
    archs         arch -> work-items of its waves
    Raises TableError or ValueError.
    """
    strings = _Strings()
    launches: dict[str, int] = {}
    recipes: dict[bytes, int] = {}
    groups = {"": 0}  # the first string is a row's name
    packed_rows, packed_objects = [], []
    for row in rows:
        name, tile = row["name"], row["tile"]
        name_at = strings.add(name)
        packed_rows.append(
            _ROW.pack(
                name_at,
                strings.add(row["symbol"]) if "symbol" in row else name_at,
                launches.setdefault(row["launch"], len(launches)),
                _kernarg_size(name, list(archs), code_objects),
                row["head_size_alignment"],
                *(tile[d] for d in ("seqlen_q", "seqlen_k", "head_size_qk", "head_size_v")),
                TABLE.pack(row["kind"], row["traits"]),
            )
        )
        for arch, wave_size in archs.items():
            record = code_objects.get((name, arch), _NO_CODE_OBJECT)
            spec = record.get("spec")
            if spec and (spec.arch, spec.key()) != (arch, record["key"]):
                raise TableError(f"{name} for {arch}: its key is not that of its spec")
            made_here = spec if isinstance(spec, CodeObjectSpec) else None
            group = made_here.group if made_here else ""
            if group not in groups:
                groups[group] = strings.add(group)
            packed_objects.append(
                _OBJECT.pack(
                    bytes.fromhex(record["key"]),
                    bytes.fromhex(record.get("sha256", "")),
                    record.get("size", 0),
                    *(block_size(row["block"], wave_size), 1, 1),
                    TABLE.hazard_bits({*record.get("defects", {}).values()} - {""}),
                    bytes.fromhex(made_here.source if made_here else ""),
                    recipes.setdefault(made_here.recipe().serialised(), 1 + len(recipes))
                    if made_here
                    else 0,
                    groups[group],
                )
            )
    slots, slot_rows = _index([TABLE.exact_key(row["kind"], row["traits"]) for row in rows])
    buckets = _buckets(rows)
    set_name = strings.add(variant_set)
    recipe_texts = [strings.add(recipe.decode("ascii")) for recipe in recipes]
    sections = [
        b"".join(packed_rows),
        b"".join(_ARCH.pack(arch.encode("ascii")) for arch in archs),
        b"".join(packed_objects),
        b"".join(_BUCKET.pack(*bucket) for bucket in buckets),
        b"".join(_SLOT.pack(*slot) for slot in slots),
        struct.pack(f"<{len(slot_rows)}I", *slot_rows),
        struct.pack(f"<{len(recipe_texts)}I", *recipe_texts),
        bytes(strings.data),
    ]
    offsets = []
    body = bytearray()
    for section in sections:
        offsets.append(_HEADER.size + len(body))
        body += section + bytes(-len(section) % 8)
    counts = map(len, (rows, archs, buckets, slots, slot_rows, recipe_texts, strings.data))
    header = _HEADER.pack(MAGIC, *counts, *offsets, set_name, _HEADER.size + len(body), 0)
    return LaunchTable(header + bytes(body), list(launches))
