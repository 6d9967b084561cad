# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""C structs for ctypes, as a compiler laid them out: from the debug information of a library."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from elftools.dwarf.die import DIE
from elftools.elf.elffile import ELFFile

# DW_AT_encoding of a base type, and its size.
_BASE = {
    (0x02, 1): ctypes.c_bool,
    (0x04, 4): ctypes.c_float,
    (0x04, 8): ctypes.c_double,
    **{(e, ctypes.sizeof(t)): t for e in (0x05, 0x06)
       for t in (ctypes.c_int8, ctypes.c_int16, ctypes.c_int32, ctypes.c_int64)},
    **{(e, ctypes.sizeof(t)): t for e in (0x07, 0x08)
       for t in (ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64)},
}  # fmt: skip
_ALIASES = ("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_member", "DW_TAG_volatile_type")


def _value(die: DIE, attribute: str) -> Any:
    return die.attributes[attribute].value


# Struct -> its class, by offset in the debug information: each struct is one class.
Made = dict[int, type[ctypes.Structure]]


def _of_type(die: DIE, made: Made) -> Any:
    return _ctype(die.get_DIE_from_attribute("DW_AT_type"), made)


def _ctype(die: DIE, made: Made) -> Any:
    """The ctypes type of a DWARF type. Raises TypeError for one that is not plain C."""
    if die.tag in _ALIASES:
        return _of_type(die, made)
    if die.tag == "DW_TAG_base_type":
        return _BASE[_value(die, "DW_AT_encoding"), _value(die, "DW_AT_byte_size")]
    if die.tag == "DW_TAG_enumeration_type":
        return _BASE[0x07, _value(die, "DW_AT_byte_size")]
    if die.tag == "DW_TAG_pointer_type":
        return ctypes.c_void_p
    if die.tag == "DW_TAG_array_type":
        (bound,) = die.iter_children()
        count = bound.attributes.get("DW_AT_count")
        return _of_type(die, made) * (
            count.value if count else _value(bound, "DW_AT_upper_bound") + 1
        )
    if die.tag == "DW_TAG_structure_type":
        return _structure(die, made)
    raise TypeError(f"{die.tag} has no ctypes type")


def _structure(die: DIE, made: Made) -> type[ctypes.Structure]:
    if die.offset not in made:
        members = [child for child in die.iter_children() if child.tag == "DW_TAG_member"]
        fields = [(_value(m, "DW_AT_name").decode(), _of_type(m, made)) for m in members]
        struct = type("Struct", (ctypes.Structure,), {"_fields_": fields})
        if ctypes.sizeof(struct) != _value(die, "DW_AT_byte_size"):
            raise TypeError(f"{fields}: ctypes and the compiler disagree about the layout")
        made[die.offset] = struct
    return made[die.offset]


@functools.cache
def structures(library: Path, names: Iterable[str]) -> tuple[type[ctypes.Structure], ...]:
    """The structs of these names, in their order. Raises KeyError for one that is not there."""
    found: dict[str, type[ctypes.Structure]] = {}
    made: Made = {}
    with library.open("rb") as file:
        for unit in ELFFile(file).get_dwarf_info().iter_CUs():
            for die in unit.iter_DIEs():
                if die.tag != "DW_TAG_structure_type" or "DW_AT_declaration" in die.attributes:
                    continue
                name = die.attributes.get("DW_AT_name")
                if name is not None and name.value.decode() in names:
                    found.setdefault(name.value.decode(), _structure(die, made))
    return tuple(found[name] for name in names)
