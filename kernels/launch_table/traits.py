# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The table of traits (traits.toml) for Python.

Standard library only: it is imported by programs that run while repositories are fetched, too.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomllib

TraitValue = str | int | bool

_KIND_BITS, _SIZE_BITS = 8, 16  # of an exact key
_ENUM_BITS = 4  # of an exact key, at most
_HAZARD_BITS = 16  # of an object's record


def padded(fields: str, alignment: int) -> str:
    """The struct format of C++'s struct of such fields, which ends at its alignment."""
    return fields + "x" * (-struct.calcsize(fields) % alignment)


@dataclasses.dataclass(frozen=True)
class Trait:
    """One entry of [[traits]]; its fields are documented in traits.toml."""

    name: str
    type: str
    match: str
    text: str | Mapping[str, str]
    doc: str
    kinds: Mapping[str, str]
    field: str = ""
    values: tuple[TraitValue, ...] = (False, True)
    upstream: Mapping[str, TraitValue] = dataclasses.field(
        default_factory=lambda: {"f": False, "t": True}
    )
    launch: bool = True

    @property
    def is_size(self) -> bool:
        return self.type == "size"

    @property
    def is_flag(self) -> bool:
        return self.type == "flag"

    @property
    def in_exact_key(self) -> bool:
        return self.match in ("exact", "at_least")


@dataclasses.dataclass(frozen=True)
class Table:
    """All of traits.toml."""

    enums: Mapping[str, Mapping[str, int]]
    schedules: Mapping[str, Mapping[str, Collection[int]]]  # arch -> schedule -> compute units
    backward_choices: Mapping[str, Sequence[Mapping[str, Any]]]  # arch -> the problems
    directions: Mapping[str, Mapping[str, Any]]
    providers: Mapping[str, str]  # name -> doc
    kinds: Mapping[str, str]  # name -> doc, by number
    provider_of: Mapping[str, str]  # kind -> provider
    hazards: Mapping[str, str]  # name -> doc, by bit
    traits: Mapping[str, Trait]

    def kind_number(self, kind: str) -> int:
        return list(self.kinds).index(kind)

    def hazard_bits(self, hazards: Collection[str]) -> int:
        """Their bits in the launch table. Raises ValueError for one that there is not."""
        bits = {hazard: 1 << bit for bit, hazard in enumerate(self.hazards)}
        if unknown := sorted(set(hazards) - bits.keys()):
            raise ValueError(f"unknown hazards: {', '.join(unknown)}; known: {', '.join(bits)}")
        return sum(bits[hazard] for hazard in set(hazards))

    def of_direction(self, direction: str) -> dict[str, Trait]:
        """The traits that any kind of a direction has."""
        kinds = set(self.directions[direction]["kinds"])
        return {name: trait for name, trait in self.traits.items() if kinds & set(trait.kinds)}

    def of_kind(self, kind: str) -> dict[str, Trait]:
        return {name: trait for name, trait in self.traits.items() if kind in trait.kinds}

    def number(self, trait: Trait, value: TraitValue) -> int:
        """A trait's value in the launch table. Raises ValueError."""
        if trait.is_size:
            if not isinstance(value, int) or not 0 <= value < 1 << _SIZE_BITS:
                raise ValueError(f"{trait.name} = {value!r}: not a 16-bit number")
            return value
        if trait.is_flag:
            return trait.values.index(value)
        return self.enums[trait.type][str(value)]

    def packed_format(self) -> str:
        """The struct format of C++'s Traits: the kind, then the traits in their order."""
        fields = "<B" + "".join("H" if trait.is_size else "B" for trait in self.traits.values())
        return padded(fields, 2)

    def pack(self, kind: str, traits: Mapping[str, TraitValue]) -> bytes:
        """C++'s Traits; a trait that is absent is 0. Raises ValueError."""
        values = [
            self.number(trait, traits[name]) if name in traits else 0
            for name, trait in self.traits.items()
        ]
        return struct.pack(self.packed_format(), self.kind_number(kind), *values)

    def offsets(self) -> dict[str, int]:
        """Trait -> its offset in C++'s Traits. Raises ValueError where a field is not aligned."""
        out, at = {}, 1
        for name, trait in self.traits.items():
            size = 2 if trait.is_size else 1
            if at % size:
                raise ValueError(f"{name}: a field of {size} bytes at offset {at}; move it")
            out[name] = at
            at += size
        return out

    def _bits(self, trait: Trait) -> int:
        """Of a trait in an exact key."""
        if trait.is_size:
            return _SIZE_BITS
        return 1 if trait.is_flag else max(self.enums[trait.type].values()).bit_length()

    def exact_key_layout(self) -> list[tuple[Trait | None, int]]:
        """(trait, first bit) of exact_key, the kind (None) first. Raises ValueError."""
        layout: list[tuple[Trait | None, int]] = [(None, 0)]
        bit = _KIND_BITS
        for trait in self.traits.values():
            if trait.in_exact_key:
                layout.append((trait, bit))
                bit += self._bits(trait)
        if bit > 64:
            raise ValueError(f"the exact traits take {bit} bits, and a key has 64")
        return layout

    def exact_key_mask(self, kind: str) -> int:
        """The bits of an exact key that a row of the kind may have."""
        mask = (1 << _KIND_BITS) - 1
        for trait, bit in self.exact_key_layout()[1:]:
            assert trait is not None
            if kind in trait.kinds:
                mask |= (1 << self._bits(trait)) - 1 << bit
        return mask

    def exact_key(self, kind: str, traits: Mapping[str, TraitValue]) -> int:
        """All traits that are matched exactly, and the greatest head sizes, as one number."""
        key = self.kind_number(kind)
        for trait, bit in self.exact_key_layout()[1:]:
            assert trait is not None
            if trait.name in traits:
                key |= self.number(trait, traits[trait.name]) << bit
        return key


def parse(text: str) -> Table:
    """The table in the text of a traits.toml. Raises ValueError where it contradicts itself."""
    document = tomllib.loads(text)
    kinds = {entry["name"]: entry["doc"] for entry in document["kinds"]}
    traits: dict[str, Trait] = {}
    for entry in document["traits"]:
        name, kind = entry["name"], entry["type"]
        if kind in document["enums"]:
            entry.setdefault("values", tuple(document["enums"][kind]))
            if max(document["enums"][kind].values()) >= 1 << _ENUM_BITS:
                raise ValueError(f"{kind}: a value needs more than {_ENUM_BITS} bits")
        elif kind not in ("flag", "size"):
            raise ValueError(f"{name}: unknown type {kind!r}")
        if entry["match"] not in ("exact", "at_least", "padding", "other"):
            raise ValueError(f"{name}: unknown match {entry['match']!r}")
        if unknown := entry["kinds"].keys() - kinds.keys():
            raise ValueError(f"{name}: unknown kinds {sorted(unknown)}")
        entry.setdefault("field", name)
        traits[name] = Trait(**{**entry, "values": tuple(entry.get("values", (False, True)))})
    for entry in document["kinds"]:
        if entry["provider"] not in document["providers"]:
            raise ValueError(f"{entry['name']}: unknown provider {entry['provider']!r}")
    for name, direction in document["directions"].items():
        if unknown := set(direction["kinds"]) - kinds.keys():
            raise ValueError(f"{name}: unknown kinds {sorted(unknown)}")
    for arch, schedules in document["schedules"].items():
        if unknown := schedules.keys() - document["enums"]["Schedule"].keys():
            raise ValueError(f"schedules.{arch}: unknown schedules {sorted(unknown)}")
    for arch, choices in document["backward_choices"].items():
        for choice in choices:
            if unknown := set(choice["mask_shape"]) - document["enums"]["MaskShape"].keys():
                raise ValueError(f"backward_choices.{arch}: unknown masks {sorted(unknown)}")
    hazards = {entry["name"]: entry["doc"] for entry in document["hazards"]}
    if len(hazards) > _HAZARD_BITS:
        raise ValueError(f"there are {len(hazards)} hazards, and a row has {_HAZARD_BITS} bits")
    return Table(
        enums=document["enums"],
        schedules=document["schedules"],
        backward_choices=document["backward_choices"],
        directions=document["directions"],
        providers={name: entry["doc"] for name, entry in document["providers"].items()},
        kinds=kinds,
        provider_of={entry["name"]: entry["provider"] for entry in document["kinds"]},
        hazards=hazards,
        traits=traits,
    )


TABLE = parse(Path(__file__).with_name("traits.toml").read_text("utf-8"))
