# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""fields.toml: the fields of AITER's structs, pin by pin, and where they lie."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import tomllib

PASSES = ("fwd", "bwd")
# Tables of fields.toml -> the structs' names.
STRUCTS = {
    "fwd": "mha_fwd_args",
    "bwd": "mha_bwd_args",
    "splitkv": "fmha_fwd_splitkv_args",
    "batch_prefill": "fmha_batch_prefill_args",
}

TABLE: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("fields.toml").read_text(encoding="utf-8")
)
PINS: list[str] = [pin["name"] for pin in TABLE["pins"]]


@dataclasses.dataclass(frozen=True)
class Field:
    name: str
    type: str
    default: str
    offset: int


def groups(table: str, pin: str) -> list[dict[str, Any]]:
    """The groups of a struct that a pin has, in order."""
    if pin not in PINS:
        raise ValueError(f"pin is {pin}, but must be one of {', '.join(PINS)}: see fields.toml")
    return [group for group in TABLE[table] if pin in group.get("pins", PINS)]


def _aligned(offset: int, alignment: int) -> int:
    return (offset + alignment - 1) // alignment * alignment


def layout(table: str, pin: str) -> tuple[list[Field], int]:
    """The fields of a struct, and its size, by the ABI's rules."""
    fields = []
    end, widest = 0, 1
    for group in groups(table, pin):
        size, alignment = TABLE["types"][group["type"]]
        widest = max(widest, alignment)
        for name in group["names"]:
            offset = _aligned(end, alignment)
            fields.append(Field(name, group["type"], group.get("default", ""), offset))
            end = offset + size
    return fields, _aligned(end, widest)
