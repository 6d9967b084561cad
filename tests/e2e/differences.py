# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Says where two wheels differ: by member, and in ELF files by section.

By hand: python3 tests/e2e/differences.py ONE.whl OTHER.whl   (needs pyelftools)
"""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

# Facts of a zip file about a member, beside its bytes.
_ATTRIBUTES = ("date_time", "compress_type", "external_attr", "create_system", "extra", "comment")


def _first_difference(one: bytes, other: bytes) -> str:
    """Names the first byte that differs, with those around it."""
    pairs = enumerate(zip(one, other, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))
    around = slice(max(at - 8, 0), at + 24)
    text = f"from byte {at:#x}: {one[around]!r} against {other[around]!r}"
    sizes = f"{len(one)} bytes against {len(other)}, " if len(one) != len(other) else ""
    return sizes + text


def _only_in(one: Mapping[str, object], other: Mapping[str, object]) -> Iterator[str]:
    yield from (f"{name}: only in the first" for name in one if name not in other)
    yield from (f"{name}: only in the second" for name in other if name not in one)


def _sections(data: bytes) -> dict[str, bytes]:
    """Returns an ELF file's sections by name; nothing for what is none."""
    try:
        sections = ELFFile(io.BytesIO(data)).iter_sections()
        return {s.name or "(no name)": s.data() for s in sections if s["sh_type"] != "SHT_NOBITS"}
    except ELFError:
        return {}


def of_bytes(one: bytes, other: bytes) -> Iterator[str]:
    """Yields a line per difference of two files' contents."""
    if one == other:
        return
    a, b = _sections(one), _sections(other)
    lines = list(_only_in(a, b)) if a and b else []
    for name in (n for n in a if n in b and a[n] != b[n]):
        lines.append(f"section {name}: {_first_difference(a[name], b[name])}")
    # A difference outside of all sections is one, too.
    yield from lines or [_first_difference(one, other)]


def of_wheels(one: Path, other: Path) -> list[str]:
    """Returns a line per difference of two wheels; none if, and only if, they are equal."""
    if one.read_bytes() == other.read_bytes():
        return []
    with zipfile.ZipFile(one) as a, zipfile.ZipFile(other) as b:
        members, others = a.NameToInfo, b.NameToInfo
        lines = list(_only_in(members, others))
        for name in (n for n in members if n in others):
            for attribute in _ATTRIBUTES:
                was, now = getattr(members[name], attribute), getattr(others[name], attribute)
                if was != now:
                    lines.append(f"{name}: {attribute} {was!r} against {now!r}")
            lines += [f"{name}: {line}" for line in of_bytes(a.read(name), b.read(name))]
        if not lines and list(members) != list(others):
            lines.append("the members are in another order")
    return lines or [f"the zip files: {_first_difference(one.read_bytes(), other.read_bytes())}"]


if __name__ == "__main__":
    found = of_wheels(Path(sys.argv[1]), Path(sys.argv[2]))
    sys.exit("\n".join(found) or 0)
