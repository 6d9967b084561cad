# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The table of AITER's assembly kernels of decoding (decode.toml): objects and their arguments.

No build takes them. `read` expands the families, and table.check holds each object's description
against the metadata in its file.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import itertools
from collections.abc import Mapping
from typing import Any

import tomllib

from kernels.aiter_asm import table
from kernels.aiter_asm.table import Layout, TableError

_SECTIONS = ("family", "layout", "defect")
_DEFAULTS: dict[str, Any] = {"queries": "as_q", "rows": 0, "selected": True, "choices": {}}
_DTYPES = ("fp16", "bf16", "fp8", "int8")
# Traits that have to have one of these values.
_VALUES = {
    "kind": ("paged", "latent"),
    "q_dtype": _DTYPES,
    "kv_dtype": (*_DTYPES, "as_q"),
    "queries": ("as_q", "as_kv"),
    "probabilities": ("as_q", "as_kv"),
    "mask": ("none", "causal"),
    "work": ("grid", "list", "prefill"),
}
_TRAITS = {*_VALUES, "heads", "tokens", "page", "rows", "selected", "lds", "layout"}
_FAMILY = {*_TRAITS, "arch", "folder", "name", "choices"}

# The problems that meet a defect.
WHEN = {
    "always": "every problem",
    "unseen_nan": "there is NaN in keys or values that no sequence has: the rest of a last block, "
    "and block 0",
    "sixteen_blocks": "a sequence has 241 to 255 keys",
    "two_tiles": "a sequence has 512 keys or more",
    "partial_tile": "the keys of a sequence do not fill tiles of 256",
    "many_rows": "the queries times heads of a sequence are more than 16",
    "more_than_two_tokens": "a sequence has more than two queries",
    "three_tokens": "a sequence has three queries",
    "scaled_keys": "the scale of keys is not 1",
    "splits": "the keys of a sequence are in several parts",
}


@dataclasses.dataclass(frozen=True)
class DecodeDefect:
    """A defect of objects, by its letters in docs/asm-findings.md; decode.toml tells the fields."""

    letters: str
    objects: tuple[str, ...]
    when: str
    shown_by: tuple[str, ...]
    changes_results: bool
    persists: bool


@dataclasses.dataclass(frozen=True)
class DecodeObject:
    """One object: a kernel of AITER's. The traits are told in decode.toml.

    elf_machine   the arch in an ELF file's flags
    tokens        queries of a sequence: the least and the most, None where there is no most
    page          keys of a block of the cache, None for any power of two
    """

    name: str
    symbol: str
    folder: str
    kind: str
    arch: str
    elf_machine: int
    q_dtype: str
    kv_dtype: str
    queries: str
    probabilities: str
    heads: int
    tokens: tuple[int, int | None]
    page: int | None
    mask: str
    work: str
    rows: int
    selected: bool
    lds: int
    layout: Layout
    defects: tuple[DecodeDefect, ...] = ()
    block: int = 256

    @property
    def file(self) -> str:
        """Path in the wheel's folder of objects."""
        return f"{self.folder}/{self.name}.co"


def _tokens(where: str, text: str) -> tuple[int, int | None]:
    least, _, most = text.partition("-")
    if not least.isdigit() or not (most.isdigit() or most in ("", "any")):
        raise TableError(f"{where}: tokens {text!r}; use N, N-M or N-any")
    return int(least), None if most == "any" else int(most or least)


def _page(where: str, text: str) -> int | None:
    if text != "any" and not text.isdigit():
        raise TableError(f"{where}: page {text!r}; use a number of keys or any")
    return None if text == "any" else int(text)


def _object(
    where: str,
    entry: Mapping[str, Any],
    values: dict[str, Any],
    machines: Mapping[str, int],
    layouts: Mapping[str, Layout],
) -> DecodeObject:
    arch = values["arch"]
    values = {t: v[arch] if isinstance(v, dict) else v for t, v in values.items()}
    for trait, allowed in _VALUES.items():
        table.one_of(f"{where}: {trait}", values[trait], allowed)
    table.one_of(f"{where}: layout", values["layout"], layouts)
    q_dtype = values["q_dtype"]
    kv_dtype = q_dtype if values["kv_dtype"] == "as_q" else values["kv_dtype"]
    by_name = {"as_q": q_dtype, "as_kv": kv_dtype}
    parts = {t: names[values[t]] for t, names in entry["choices"].items()}
    parts = {t: str(values[t]) for t in ("q_dtype", "kv_dtype")} | parts
    name = entry["name"].format(**parts)
    return DecodeObject(
        **values
        | {
            "name": name,
            "symbol": f"_ZN5aiter{len(name)}{name}E",
            "folder": f"{arch}/{entry['folder']}",
            "elf_machine": machines[arch],
            "kv_dtype": kv_dtype,
            "queries": by_name[values["queries"]],
            "probabilities": by_name[values["probabilities"]],
            "heads": int(values["heads"]),
            "tokens": _tokens(where, values["tokens"]),
            "page": _page(where, values["page"]),
            "layout": layouts[values["layout"]],
        }
    )


def _family(
    name: str, entry: Mapping[str, Any], machines: Mapping[str, int], layouts: Mapping[str, Layout]
) -> list[DecodeObject]:
    where = f"family {name}"
    entry = _DEFAULTS | dict(entry)
    for arch in entry.get("arch", ()):
        table.one_of(f"{where}: arch", arch, machines)
    if twice := sorted((entry.keys() - _DEFAULTS.keys()) & entry["choices"].keys()):
        raise TableError(f"{where}: {', '.join(twice)}: has a value, and choices")
    table.keys(where, entry | entry["choices"], _FAMILY)
    fixed = {trait: entry[trait] for trait in _TRAITS if trait in entry}
    axes = [[(trait, value) for value in names] for trait, names in entry["choices"].items()]
    return [
        _object(where, entry, fixed | {"arch": arch} | dict(chosen), machines, layouts)
        for arch in entry["arch"]
        for chosen in itertools.product(*axes)
    ]


def _layouts(entries: Mapping[str, Any]) -> dict[str, Layout]:
    """Layouts, those with `part_of` behind those that they are parts of."""
    whole = {n: table.layout(n, e) for n, e in entries.items() if "part_of" not in e}
    parts = {}
    for name, entry in entries.items():
        if name in whole:
            continue
        table.keys(f"layout {name}", entry, {"size", "part_of"})
        table.one_of(f"layout {name}: part_of", entry["part_of"], whole)
        within = (a for a in whole[entry["part_of"]].arguments if a.offset < entry["size"])
        parts[name] = Layout(name, entry["size"], tuple(within))
    return whole | parts


def _defect(letters: str, entry: Mapping[str, Any]) -> DecodeDefect:
    where = f"defect {letters}"
    fields = {field.name for field in dataclasses.fields(DecodeDefect)} - {"letters"}
    table.keys(where, entry, fields)
    table.one_of(f"{where}: when", entry["when"], WHEN)
    lists = {name: tuple(entry[name]) for name in ("objects", "shown_by")}
    return DecodeDefect(letters, **(dict(entry) | lists))


def read(forward: str, text: str) -> list[DecodeObject]:
    """The objects of decode.toml's text; the archs are those of forward.toml's. Raises
    TableError."""
    machines = tomllib.loads(forward)["elf_machine"]
    sections = {name: {} for name in _SECTIONS} | tomllib.loads(text)
    for section in sections:
        table.one_of("section", section, _SECTIONS)
    layouts = _layouts(sections["layout"])
    objects: dict[str, DecodeObject] = {}
    for name, entry in sections["family"].items():
        for described in _family(name, entry, machines, layouts):
            if described.file in objects:
                raise TableError(f"family {name}: {described.file} is described twice")
            objects[described.file] = described
    defects = [_defect(letters, entry) for letters, entry in sections["defect"].items()]
    for defect in defects:
        for pattern in defect.objects:
            if not fnmatch.filter(objects, pattern):
                raise TableError(f"defect {defect.letters}: no object is {pattern}")
    return [
        dataclasses.replace(
            described,
            defects=tuple(
                d for d in defects if any(fnmatch.fnmatchcase(described.file, p) for p in d.objects)
            ),
        )
        for described in objects.values()
    ]
