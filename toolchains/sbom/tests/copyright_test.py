# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Copyright files of Debian packages, and the packages that they are in."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from toolchains.sbom import contents, copyright, read_copyrights
from toolchains.sbom.materials import Material

READABLE = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Source: somewhere
# a comment: of no meaning

Files: *
Copyright: somebody
License: APACHE-2-LLVM-EXCEPTIONS
 A text.
 .
 License: of no meaning, either

Files: lib/wrappers/* lib/other.h
License: Expat

Files: lib/wrappers/odd.h
Copyright: a licence without a name

Files: lib/strange.h
License: Beerware

License: Expat
 The text.
"""
PROSE = "This package was debianized by somebody.\n\nLicense: see Files: *\n"


@pytest.mark.parametrize(
    ("sources", "licence"),
    [
        (["lib/a.h"], "Apache-2.0 WITH LLVM-exception"),
        (["lib/other.h"], "MIT"),
        (["lib/wrappers/new", "lib/a.h"], "Apache-2.0 WITH LLVM-exception AND MIT"),
        (["lib/wrappers/odd.h"], None),
        (["lib/a.h", "lib/strange.h"], None),
        ([], None),
    ],
)
def test_the_last_paragraph_that_matches_holds(sources: list[str], licence: str | None) -> None:
    assert copyright.licence(READABLE, sources) == licence


def test_a_file_that_no_paragraph_matches() -> None:
    text = READABLE.replace("Files: *", "Files: doc/*")
    assert copyright.licence(text, ["lib/a.h"]) is None


def test_what_is_machine_readable() -> None:
    assert copyright.is_machine_readable(READABLE)
    assert not copyright.is_machine_readable(PROSE)
    assert not copyright.is_machine_readable("")


@pytest.mark.parametrize(
    ("line", "licence"),
    [
        (
            "/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */",
            "GPL-2.0-only WITH Linux-syscall-note",
        ),
        ("// SPDX-License-Identifier: MIT", "MIT"),
        ("/* SPDX-License-Identifier: (GPL-2.0 OR BSD-3-Clause) */", None),
        ("/* SPDX-License-Identifier: GPL-2.0 OR MIT */", None),
        ("/* License: MIT */", None),
    ],
)
def test_a_files_own_word(line: str, licence: str | None) -> None:
    assert copyright.named_licence(f"{line}\n#ifndef X\n") == licence


def package(files: Path, name: str, text: str, header: str = "") -> Material:
    """A .deb among the files, whose copyright file has this text, and usr/include/x.h that one."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:xz") as tar:
        for path, body in ((f"usr/share/doc/{name}/copyright", text), ("usr/include/x.h", header)):
            entry = tarfile.TarInfo(f"./{path}")
            entry.size = len(body)
            tar.addfile(entry, io.BytesIO(body.encode()))
    data = b"!<arch>\n"
    # Of odd length: the next one begins at an even place.
    for member, body in (("debian-binary", b"2.0"), ("data.tar.xz", stream.getvalue())):
        head = f"{member:16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(body):<10}`\n"
        data += head.encode() + body + b"\n" * (len(body) % 2)
    digest = hashlib.sha256(data).hexdigest()
    (files / digest).write_bytes(data)
    return Material("debian", name, "1", digest)


def known(**packages: str | list[str]) -> contents.Contents:
    return contents.Contents({"in_wheel": {"debian": packages}})


def test_collecting(tmp_path: Path) -> None:
    machine = package(tmp_path, "machine", READABLE)
    strange = package(tmp_path, "strange", READABLE)
    prose = package(tmp_path, "prose", PROSE)
    tool = Material("debian", "tool", "1", "0" * 64)
    table = known(machine=["lib/a.h"], strange=["lib/strange.h"], prose="MIT")
    found = json.loads(read_copyrights.collect(table, [machine, strange, prose, tool], tmp_path))
    assert {name: entry["licence"] for name, entry in found.items()} == {
        "machine": "Apache-2.0 WITH LLVM-exception",
        "strange": "NOASSERTION",
    }
    assert found["machine"]["sha256"] == machine.sha256


def test_a_file_of_the_package_has_the_last_word(tmp_path: Path) -> None:
    line = "/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */\n"
    header = "usr/include/x.h"
    packages = [
        package(tmp_path, "machine", READABLE, line),
        package(tmp_path, "mixed", READABLE, line),
        package(tmp_path, "prose", PROSE, line),
        package(tmp_path, "silent", READABLE),
    ]
    table = known(machine=[header], mixed=[header, "lib/other.h"], prose=[header], silent=[header])
    found = json.loads(read_copyrights.collect(table, packages, tmp_path))
    assert {name: entry["licence"] for name, entry in found.items()} == {
        "machine": "GPL-2.0-only WITH Linux-syscall-note",
        "mixed": "GPL-2.0-only WITH Linux-syscall-note AND MIT",
        "prose": "GPL-2.0-only WITH Linux-syscall-note",
        "silent": "NOASSERTION",
    }


@pytest.mark.parametrize(
    ("text", "value", "words"),
    [
        (READABLE, "MIT", "is machine-readable; have contents.toml name the sources"),
        (PROSE, ["lib/a.h"], "is not machine-readable; have contents.toml say"),
        (READABLE, ["usr/include/gone.h"], "it has no file 'usr/include/gone.h'"),
    ],
)
def test_contents_that_do_not_fit_the_package(
    tmp_path: Path, text: str, value: str | list[str], words: str
) -> None:
    material = package(tmp_path, "x", text)
    with pytest.raises(read_copyrights.CopyrightError, match=words):
        read_copyrights.collect(known(x=value), [material], tmp_path)


def test_packages_that_are_not_there_or_broken(tmp_path: Path) -> None:
    material = package(tmp_path, "x", READABLE)
    deb = tmp_path / material.sha256
    whole = deb.read_bytes()
    deb.write_bytes(whole[:-1])
    with pytest.raises(read_copyrights.CopyrightError, match="not what its name says"):
        read_copyrights.collect(known(x=["a"]), [material], tmp_path)
    deb.unlink()
    with pytest.raises(read_copyrights.CopyrightError, match=r"is missing; run ./bazelw --vendor"):
        read_copyrights.collect(known(x=["a"]), [material], tmp_path)
    deb.write_bytes(b"<html>")
    with pytest.raises(read_copyrights.CopyrightError, match="not a Debian package"):
        read_copyrights.read_deb(deb, "x")
    deb.write_bytes(whole[:72])
    with pytest.raises(read_copyrights.CopyrightError, match=r"no data\.tar"):
        read_copyrights.read_deb(deb, "x")
