# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""//aiter:dist as a stranger uses it: unpacked somewhere, found by CMake, linked, run."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tarfile
from pathlib import Path

import pytest

from tests.consumers.cmake_project import VERSION, build, configure_with_dist, run, unpack


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked archive, below a path with a space."""
    return unpack(tmp_path_factory.mktemp("a prefix"))


@pytest.mark.parametrize("static", ["OFF", "ON"])
def test_programs_of_cmake(tmp_path: Path, prefix: Path, static: str) -> None:
    build(tmp_path, prefix, static)
    for program in ("of_c", "of_cpp"):
        done = run(tmp_path / program)
        assert (done.returncode, done.stderr) == (0, "")
        assert re.fullmatch(r"right; \d+ kernels\n", done.stdout)
        needed = b"libaiter_attn.so.1" in (tmp_path / program).read_bytes()
        assert needed == (static == "OFF")


@pytest.mark.parametrize("wanted", ["0.2", "1.0", "0.1.1"])
def test_another_version_is_refused(tmp_path: Path, prefix: Path, wanted: str) -> None:
    done = configure_with_dist(tmp_path, prefix, f"-DWANTED_VERSION={wanted}")
    assert done.returncode != 0
    assert f'compatible with requested version "{wanted}"' in done.stderr
    assert f"version: {VERSION}" in done.stderr


def test_files(prefix: Path) -> None:
    manifest = json.loads((prefix / "share/aiter_attn/manifest.json").read_text())
    found = {
        str(path.relative_to(prefix))
        for path in prefix.rglob("*")
        if path.is_file() and not path.is_symlink()
    }
    assert found == {*manifest["files"], "share/aiter_attn/manifest.json"}
    for path, digest in manifest["files"].items():
        assert hashlib.sha256((prefix / path).read_bytes()).hexdigest() == digest
    assert os.readlink(prefix / "lib/libaiter_attn.so") == "libaiter_attn.so.1"
    assert {"include/aiter/attn.h", "include/aiter/attn.hpp", "include/aiter/norm.h"} <= found


def test_pkg_config(prefix: Path) -> None:
    lines = (prefix / "lib/pkgconfig/aiter_attn.pc").read_text().splitlines()
    assert "Libs: -L${libdir} -laiter_attn" in lines
    assert f"Version: {VERSION}" in lines
    assert "@" not in "".join(lines)


def test_entries_of_the_archive_name_nobody() -> None:
    with tarfile.open(os.environ["DIST"]) as tar:
        for entry in tar:
            owner = (entry.uid, entry.gid, entry.uname, entry.gname, entry.mtime)
            assert owner == (0, 0, "", "", 0)


def test_the_compressed_archive_is_small_and_of_zstd() -> None:
    compressed = Path(os.environ["COMPRESSED"]).read_bytes()
    assert compressed[:4] == b"\x28\xb5\x2f\xfd"
    assert len(compressed) < Path(os.environ["DIST"]).stat().st_size / 2
