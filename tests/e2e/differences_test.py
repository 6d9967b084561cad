# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The report on two wheels that differ: enough to find the cause."""

from __future__ import annotations

import os
import struct
import zipfile
from pathlib import Path

import pytest

from tests.e2e import differences

TIME = (1980, 1, 1, 0, 0, 0)


def wheel(path: Path, members: dict[str, bytes], time: tuple[int, ...] = TIME) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        for name, data in members.items():
            made.writestr(zipfile.ZipInfo(name, time), data)
    return path


def elf(rodata: bytes) -> bytes:
    """A small ELF file: sections .rodata and .shstrtab."""
    names = b"\0.rodata\0.shstrtab\0"
    header, section = 64, 64
    at = header + len(rodata) + len(names)
    sections = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    sections += struct.pack("<IIQQQQIIQQ", 1, 1, 2, 0, header, len(rodata), 0, 0, 1, 0)
    name_at = header + len(rodata)
    sections += struct.pack("<IIQQQQIIQQ", 9, 3, 0, 0, name_at, len(names), 0, 0, 1, 0)
    ident = b"\x7fELF\2\1\1" + bytes(9)
    rest = struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, at, 0, 64, 0, 0, section, 3, 2)
    return ident + rest + rodata + names + sections


def test_equal_wheels(tmp_path: Path) -> None:
    one = wheel(tmp_path / "one.whl", {"a": b"x"})
    assert differences.of_wheels(one, wheel(tmp_path / "other.whl", {"a": b"x"})) == []


def test_a_section_of_a_member_is_named(tmp_path: Path) -> None:
    one = wheel(tmp_path / "one.whl", {"p/_C.so": elf(b"built in /home/a")})
    other = wheel(tmp_path / "other.whl", {"p/_C.so": elf(b"built in /home/b")})
    (line,) = differences.of_wheels(one, other)
    assert line.startswith("p/_C.so: section .rodata: from byte 0xf: ")
    assert "home/a" in line
    assert "home/b" in line


def test_bytes_outside_of_all_sections_count(tmp_path: Path) -> None:
    data = bytearray(elf(b"same"))
    data[8] = 1  # the ABI's version, in the header
    one = wheel(tmp_path / "one.whl", {"_C.so": elf(b"same")})
    (line,) = differences.of_wheels(one, wheel(tmp_path / "other.whl", {"_C.so": bytes(data)}))
    assert line.startswith("_C.so: from byte 0x8: ")


@pytest.mark.parametrize(
    ("members", "time", "part"),
    [
        ({"a": b"x"}, TIME, "b: only in the first"),
        ({"a": b"x", "b": b"y", "c": b""}, TIME, "c: only in the second"),
        ({"a": b"x", "b": b"yz"}, TIME, "b: 1 bytes against 2, from byte 0x1"),
        ({"b": b"y", "a": b"x"}, TIME, "the members are in another order"),
        ({"a": b"x", "b": b"y"}, (2033, 5, 18, 3, 33, 20), "a: date_time (1980, 1, 1, 0, 0, 0)"),
    ],
)
def test_what_differs_is_said(
    tmp_path: Path, members: dict[str, bytes], time: tuple[int, ...], part: str
) -> None:
    one = wheel(tmp_path / "one.whl", {"a": b"x", "b": b"y"})
    lines = differences.of_wheels(one, wheel(tmp_path / "other.whl", members, time))
    assert any(line.startswith(part) for line in lines), lines


def test_bytes_that_are_in_no_member_count(tmp_path: Path) -> None:
    one = wheel(tmp_path / "one.whl", {"a": b"x"})
    other = tmp_path / "other.whl"
    with zipfile.ZipFile(other, "w") as made:
        made.writestr(zipfile.ZipInfo("a", TIME), b"x")
        made.comment = os.fsencode("built on Monday")
    (line,) = differences.of_wheels(one, other)
    assert line.startswith("the zip files: ")
    assert "Monday" in line or "bytes against" in line
