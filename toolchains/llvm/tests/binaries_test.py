# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Needs and contents of the C++ toolchain's binaries: glibc only, nothing of the build's place."""

import pathlib
import re
import subprocess

import pytest

HERE = pathlib.Path("toolchains/llvm/tests")
TOOLS = next(iter(pathlib.Path("..").glob("*llvm/llvm-readelf"))).parent.absolute()
BINARIES = ["cxx_test", "libexports.so"]

# Of glibc: libm, and libc with its loader.
ALLOWED = {"libm.so.6", "libc.so.6", "ld-linux-x86-64.so.2"}
GLIBC = (2, 36)


def tool(name: str, *arguments: str) -> str:
    command = [str(TOOLS / name), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", BINARIES)
def test_a_binary_needs_glibc_only(name):
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", tool("llvm-readelf", "-d", str(HERE / name))))
    assert "libc.so.6" in needed
    assert needed <= ALLOWED


@pytest.mark.parametrize("name", BINARIES)
def test_no_symbol_is_newer_than_the_sysroot(name):
    versions = re.findall(r"GLIBC_([0-9.]+)", tool("llvm-readelf", "-V", str(HERE / name)))
    assert versions
    assert max(tuple(map(int, v.split("."))) for v in versions) <= GLIBC


def test_a_version_script_is_honoured():
    symbols = tool("llvm-nm", "-D", "--defined-only", "-C", str(HERE / "libexports.so"))
    assert [line.split(maxsplit=2)[2] for line in symbols.splitlines()] == ["ThrowOutOfRange(int)"]


@pytest.mark.parametrize("name", [*BINARIES, "libarchive.a"])
def test_no_file_tells_where_it_was_made(name):
    strings = re.findall(rb"[\x20-\x7e]{6,}", (HERE / name).read_bytes())
    place = rb"execroot|sandbox|external/[^/]*[~+]|bazel-out|/(home|root)/"
    assert [s for s in strings if re.search(place, s)] == []


def test_debug_information_is_relative():
    folders = tool("llvm-readelf", "--string-dump=.debug_line_str", str(HERE / "libarchive.a"))
    assert "throws.cc" in folders
    assert re.findall(r"\]\s+(/.*)", folders) == []


def test_an_archive_is_deterministic():
    listing = tool("llvm-ar", "tv", str(HERE / "libarchive.a"))
    for line in listing.splitlines():
        assert re.match(r"rw-r--r-- 0/0\s+\d+ Jan  1 00:00 1970 ", line), line
