# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The slim wheel has headers of others, for hipRTC: with the licence of each package of them."""

from __future__ import annotations

import email
import fnmatch
import hashlib
import json
import os
import re
import zipfile
from email.message import Message
from pathlib import Path

import pytest

HEADERS = Path(os.environ["HEADERS"])
WHEEL = Path(os.environ["WHEEL"])

# Name of a licence -> the package of the headers; their names; words of the text.
PARTS = {
    "clang": (
        "libclang-common-*-dev",
        r"usr/lib/llvm-\d+/lib/clang/\d+/include/.*",
        "LLVM Exceptions to the Apache 2.0 License",
    ),
    "glibc": (
        "libc6-dev",
        r"usr/include/([^/]+|x86_64-linux-gnu/(bits|gnu|sys)/.*)",
        "Most of the GNU C library is under",
    ),
    "hip": (
        "libamdhip64-dev",
        r"usr/include/hip/.*",
        "Permission is hereby granted, free of charge",
    ),
    "libstdc++": (
        "libstdc++-*-dev",
        r"usr/include/(x86_64-linux-gnu/)?c\+\+/.*",
        "GCC RUNTIME LIBRARY EXCEPTION",
    ),
    "linux": (
        "linux-libc-dev",
        r"usr/include/(asm-generic|linux|x86_64-linux-gnu/asm)/.*",
        "Upstream-Name: Linux kernel",
    ),
}
# The project's own.
PRELUDE = "hiprtc_prelude.h"


@pytest.fixture(scope="module")
def wheel() -> zipfile.ZipFile:
    return zipfile.ZipFile(WHEEL)


@pytest.fixture(scope="module")
def headers() -> dict[str, bytes]:
    files = (path for path in HEADERS.rglob("*") if path.is_file())
    return {str(path.relative_to(HEADERS)): path.read_bytes() for path in files}


def information(wheel: zipfile.ZipFile, name: str) -> str:
    return wheel.read(f"aiter_attn-{WHEEL.name.split('-')[1]}.dist-info/{name}").decode()


def metadata(wheel: zipfile.ZipFile) -> Message:
    return email.message_from_string(information(wheel, "METADATA"))


def expressions(component: dict) -> set[str]:
    """The licences of a component, all of which hold."""
    (licence,) = component["licenses"]
    text = licence["expression"] if "expression" in licence else licence["license"]["id"]
    return set(text.split(" AND "))


def test_these_are_the_headers_in_it(wheel: zipfile.ZipFile, headers: dict[str, bytes]) -> None:
    assert len(headers) > 200
    pack = wheel.read("aiter_attn/kernel_sources.attnpack")
    absent = [n for n, text in headers.items() if hashlib.sha256(text).digest() not in pack]
    assert absent == []


def test_every_header_is_of_one_package_with_its_licence(
    wheel: zipfile.ZipFile, headers: dict[str, bytes]
) -> None:
    found = {
        name: [part for part, (_, names, _) in PARTS.items() if re.fullmatch(names, name)]
        for name in headers
        if name != PRELUDE
    }
    assert [name for name, parts in found.items() if len(parts) != 1] == []
    assert {part for parts in found.values() for part in parts} == set(PARTS)
    # Other packages may have headers beside glibc's.
    beside = [name for name in headers if re.fullmatch("usr/include/[^/]+", name)]
    assert [name for name in beside if b"Free Software Foundation" not in headers[name]] == []
    for part, (_, _, words) in PARTS.items():
        assert words in information(wheel, f"licenses/{part}/LICENSE"), part


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("GPL-2", "GNU GENERAL PUBLIC LICENSE\n                       Version 2, June 1991"),
        ("GPL-3", "GNU GENERAL PUBLIC LICENSE\n                       Version 3, 29 June 2007"),
        ("LGPL-2.1", "END OF TERMS AND CONDITIONS"),
    ],
)
def test_licences_that_these_refer_to_are_whole(
    wheel: zipfile.ZipFile, name: str, words: str
) -> None:
    text = information(wheel, f"licenses/{name}/LICENSE")
    assert words in text
    assert len(text) > 15_000
    texts = [information(wheel, f"licenses/{part}/LICENSE") for part in PARTS]
    assert any(f"/usr/share/common-licenses/{name}" in text for text in texts)


def test_the_sources_of_kernels_have_theirs(wheel: zipfile.ZipFile) -> None:
    text = information(wheel, "licenses/composable-kernel/LICENSE")
    assert "Copyright (c) 2018-2025, Advanced Micro Devices, Inc." in text


def test_metadata_and_sbom_name_the_same(wheel: zipfile.ZipFile) -> None:
    fields = metadata(wheel)
    assert {f"{part}/LICENSE" for part in PARTS} <= set(fields.get_all("License-File") or ())
    inside = [name.partition("/licenses/")[2] for name in wheel.namelist() if "/licenses/" in name]
    assert sorted(inside) == sorted(fields.get_all("License-File") or ())
    named = set(fields["License-Expression"].split(" AND "))
    bom = json.loads(information(wheel, "sboms/aiter-attn.cdx.json"))
    for package, _, _ in PARTS.values():
        components = [c for c in bom["components"] if fnmatch.fnmatchcase(c["name"], package)]
        assert components, package
        for component in components:
            assert component["scope"] == "required", package
            assert expressions(component) <= named, package
