# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Wheels packed of shared objects written here."""

from __future__ import annotations

import base64
import hashlib
import io
import itertools
import struct
import zipfile

import pytest

from python.private import elf, wheel_format


class Strings:
    def __init__(self) -> None:
        self.data = b"\0"

    def add(self, text: str) -> int:
        offset = len(self.data)
        self.data += text.encode() + b"\0"
        return offset


def shared_object(
    needed: list[str], versions: list[tuple[str, list[str]]], symbols: list[tuple[str, int, int]]
) -> bytes:
    """An ELF file with this in its dynamic section; symbols are (name, section, binding)."""
    strings = Strings()
    dynamic = b"".join(struct.pack("<qQ", 1, strings.add(name)) for name in needed)
    dynamic += struct.pack("<qQ", 0, 0)
    need = b""
    for i, (soname, names) in enumerate(versions):
        size = 16 + 16 * len(names)
        last = i == len(versions) - 1
        need += struct.pack("<HHIII", 1, len(names), strings.add(soname), 16, 0 if last else size)
        for j, name in enumerate(names):
            end = j == len(names) - 1
            need += struct.pack("<IHHII", 0, 0, 2, strings.add(name), 0 if end else 16)
    dynsym = struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)
    for name, section, binding in symbols:
        dynsym += struct.pack("<IBBHQQ", strings.add(name), binding << 4, 0, section, 0, 0)

    bodies = [b"", strings.data, dynamic, need, dynsym]
    kinds = [0, 3, 6, 0x6FFFFFFE, 11]
    infos = [0, 0, 0, len(versions), 1]
    offsets = list(itertools.accumulate((len(b) for b in bodies), initial=64))
    header = b"\x7fELF\x02\x01".ljust(16, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, offsets[-1], 0, 64, 0, 0, 64, 5, 1)
    entries = [0, 0, 16, 0, 24]
    table = b"".join(
        struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, offset, len(body), 1, info, 1, entry)
        for kind, offset, body, info, entry in zip(
            kinds, offsets, bodies, infos, entries, strict=False
        )
    )
    return header + b"".join(bodies) + table


OBJECT = shared_object(
    ["libm.so.6", "libc.so.6"],
    [("libm.so.6", ["GLIBC_2.29"]), ("libc.so.6", ["GLIBC_2.2.5", "GLIBC_2.34", "GLIBC_2.4"])],
    [("aiter_attn_fwd", 7, 1), ("malloc", 0, 1), ("local", 7, 0), ("PyInit__C", 7, 1)],
)


def test_reads_what_the_loader_reads() -> None:
    found = elf.read(OBJECT)
    assert found.needed == ("libm.so.6", "libc.so.6")
    assert found.versions == {
        ("libm.so.6", "GLIBC_2.29"),
        ("libc.so.6", "GLIBC_2.2.5"),
        ("libc.so.6", "GLIBC_2.34"),
        ("libc.so.6", "GLIBC_2.4"),
    }
    assert found.exported == ("PyInit__C", "aiter_attn_fwd")


@pytest.mark.parametrize("data", [b"", b"\x7fELF\x01\x01", b"MZ\0\0\0\0"])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(elf.ElfError, match="no ELF64 little-endian file"):
        elf.read(data)


def test_half_a_file_is_refused() -> None:
    with pytest.raises(elf.ElfError, match="malformed"):
        elf.read(OBJECT[:60])


def test_the_lowest_tag_is_the_greatest_version_needed() -> None:
    older = shared_object(["libc.so.6"], [("libc.so.6", ["GLIBC_2.17"])], [])
    assert wheel_format.lowest_glibc({"a.so": older}) == (2, 17)
    assert wheel_format.lowest_glibc({"a.so": older, "b.so": OBJECT}) == (2, 34)
    assert wheel_format.lowest_glibc({}) == (2, 5)
    assert wheel_format.platform_tag("2.34", {"b.so": OBJECT}) == "manylinux_2_34_x86_64"


@pytest.mark.parametrize("glibc", ["2.33", "2.35"])
def test_an_untrue_tag_is_refused(glibc: str) -> None:
    with pytest.raises(wheel_format.WheelError, match=r"the lowest .* is 2\.34: set"):
        wheel_format.platform_tag(glibc, {"b.so": OBJECT})


def test_a_foreign_library_is_refused() -> None:
    foreign = shared_object(["libstdc++.so.6", "libc.so.6"], [], [])
    with pytest.raises(wheel_format.WheelError, match=r"^a\.so needs libstdc\+\+\.so\.6, which"):
        wheel_format.lowest_glibc({"a.so": foreign})


def test_a_version_that_is_not_glibcs_is_refused() -> None:
    odd = shared_object(["libc.so.6"], [("libc.so.6", ["GLIBC_PRIVATE"])], [])
    with pytest.raises(wheel_format.WheelError, match=r"needs GLIBC_PRIVATE of libc\.so"):
        wheel_format.lowest_glibc({"a.so": odd})


PROJECT = {
    "name": "some-thing",
    "description": "What it is",
    "requires-python": ">=3.10",
    "license": "Apache-2.0",
    "classifiers": ["Typing :: Typed"],
    "dependencies": ["other[extra]"],
    "urls": {"Source": "https://example.org/x"},
    "optional-dependencies": {"selftest": ["numpy>=1.26"]},
}


def test_commands() -> None:
    project = PROJECT | {"scripts": {"one": "p.q:f", "an-other": "p:g"}}
    expected = "[console_scripts]\nan-other = p:g\none = p.q:f\n"
    assert wheel_format.entry_points(project) == expected
    assert wheel_format.entry_points(PROJECT) == ""


def test_entry_points() -> None:
    points = {"b.plugins": {"y": "p:h", "x": "p.q"}, "a.plugins": {"z": "p:g"}}
    project = PROJECT | {"entry-points": points}
    own = "[a.plugins]\nz = p:g\n\n[b.plugins]\nx = p.q\ny = p:h\n"
    assert wheel_format.entry_points(project) == own
    commands = "[console_scripts]\none = p.q:f\n"
    project["scripts"] = {"one": "p.q:f"}
    assert wheel_format.entry_points(project) == f"{own}\n{commands}"
    project["entry-points"] = points | {"console_scripts": {"two": "p:f"}}
    with pytest.raises(wheel_format.WheelError, match=r"console_scripts.*\[project.scripts\]"):
        wheel_format.entry_points(project)


def test_metadata() -> None:
    assert wheel_format.metadata(PROJECT, "1.2", "# Title\n", ["LICENSE", "other/LICENSE"]) == (
        "Metadata-Version: 2.4\n"
        "Name: some-thing\n"
        "Version: 1.2\n"
        "Summary: What it is\n"
        "Classifier: Typing :: Typed\n"
        "Project-URL: Source, https://example.org/x\n"
        "Requires-Python: >=3.10\n"
        "License-Expression: Apache-2.0\n"
        "License-File: LICENSE\n"
        "License-File: other/LICENSE\n"
        "Requires-Dist: other[extra]\n"
        "Provides-Extra: selftest\n"
        'Requires-Dist: numpy>=1.26; extra == "selftest"\n'
        "Description-Content-Type: text/markdown; charset=UTF-8\n"
        "\n"
        "# Title\n"
    )


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(wheel_format.WheelError, match=r"unknown keys \['sumary'\]"):
        wheel_format.metadata({**PROJECT, "sumary": "x"}, "1.2", "", ["LICENSE"])


def test_programs_can_be_executed_and_nothing_else() -> None:
    files = {
        "p/a.pack": b"ATTNPKF1",
        "p/lib.so.1": b"\x7fELF",
        "p/program": b"\x7fELF",
        "p/script": b"#!/bin/sh",
        "p/text": b"ELF #!",
    }
    with zipfile.ZipFile(io.BytesIO(wheel_format.archive(files, "p-1.dist-info"))) as opened:
        modes = {e.filename: e.external_attr >> 16 & 0o777 for e in opened.infolist()}
    executable = {name for name, mode in modes.items() if mode == 0o755}
    assert executable == {"p/lib.so.1", "p/program", "p/script"}


def test_the_archive_is_a_function_of_its_files() -> None:
    files = {"p/b.py": b"b" * 1000, "p/a.so": OBJECT, "p-1.dist-info/WHEEL": b"w"}
    first = wheel_format.archive(files, "p-1.dist-info")
    assert first == wheel_format.archive(dict(reversed(files.items())), "p-1.dist-info")
    with zipfile.ZipFile(io.BytesIO(first)) as opened:
        entries = opened.infolist()
        assert [e.filename for e in entries] == [
            "p/a.so",
            "p/b.py",
            "p-1.dist-info/WHEEL",
            "p-1.dist-info/RECORD",
        ]
        assert {e.date_time for e in entries} == {(1980, 1, 1, 0, 0, 0)}
        assert [e.external_attr >> 16 & 0o777 for e in entries] == [0o755, 0o644, 0o644, 0o644]
        assert opened.read("p/b.py") == files["p/b.py"]
        digest = base64.urlsafe_b64encode(hashlib.sha256(b"w").digest()).rstrip(b"=").decode()
        assert opened.read("p-1.dist-info/RECORD").decode().splitlines()[2:] == [
            f"p-1.dist-info/WHEEL,sha256={digest},1",
            "p-1.dist-info/RECORD,,",
        ]
