# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""//aiter:dist as a stranger uses it: unpacked somewhere, found by CMake, linked, run."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

_TAR = Path(os.environ["DIST"])
_VERSION = "0.1.0"


def run(*command: object, **kwargs: object) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "RUNFILES": str(Path.cwd().parent)}
    return subprocess.run([*map(str, command)], capture_output=True, text=True, env=environment,
                          **kwargs)  # fmt: skip


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked archive, below a path with a space."""
    folder = tmp_path_factory.mktemp("a prefix")
    shutil.unpack_archive(_TAR, folder)
    return folder / f"aiter_attn-{_VERSION}"


def configure(folder: Path, prefix: Path, *options: str) -> subprocess.CompletedProcess[str]:
    compilers = {Path(path).name: Path(path).absolute() for path in os.environ["CC"].split()}
    return run(
        Path(os.environ["CMAKE"]).absolute(), "-G", "Ninja", "-S",
        Path(os.environ["PROJECT"]).parent.absolute(), "-B", folder,
        f"-DCMAKE_MAKE_PROGRAM={Path(os.environ['NINJA']).absolute()}",
        f"-DCMAKE_C_COMPILER={compilers['cc']}", f"-DCMAKE_CXX_COMPILER={compilers['c++']}",
        "-DCMAKE_CXX_STANDARD=17",
        f"-DCMAKE_PREFIX_PATH={prefix}", *options,
    )  # fmt: skip


@pytest.mark.parametrize("static", ["OFF", "ON"])
def test_programs_of_cmake(tmp_path: Path, prefix: Path, static: str) -> None:
    done = configure(tmp_path, prefix, f"-DAITER_STATIC_LINK={static}", "-DWANTED_VERSION=0.1")
    assert done.returncode == 0, done.stdout + done.stderr
    done = run(Path(os.environ["NINJA"]).absolute(), "-C", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for program in ("of_c", "of_cpp"):
        done = run(tmp_path / program)
        assert (done.returncode, done.stderr) == (0, "")
        assert re.fullmatch(r"right; \d+ kernels\n", done.stdout)
        needed = b"libaiter_attn.so.1" in (tmp_path / program).read_bytes()
        assert needed == (static == "OFF")


@pytest.mark.parametrize("wanted", ["0.2", "1.0", "0.1.1"])
def test_another_version_is_refused(tmp_path: Path, prefix: Path, wanted: str) -> None:
    done = configure(tmp_path, prefix, f"-DWANTED_VERSION={wanted}")
    assert done.returncode != 0
    assert f'compatible with requested version "{wanted}"' in done.stderr
    assert f"version: {_VERSION}" in done.stderr


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
    assert f"Version: {_VERSION}" in lines
    assert "@" not in "".join(lines)


def test_entries_of_the_archive_name_nobody() -> None:
    with tarfile.open(_TAR) as tar:
        for entry in tar:
            owner = (entry.uid, entry.gid, entry.uname, entry.gname, entry.mtime)
            assert owner == (0, 0, "", "", 0)


def test_the_compressed_archive_is_small_and_of_zstd() -> None:
    compressed = Path(os.environ["COMPRESSED"]).read_bytes()
    assert compressed[:4] == b"\x28\xb5\x2f\xfd"
    assert len(compressed) < _TAR.stat().st_size / 2
