# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The ends of a group's compile, with stand-ins for the compiler; the real one is groups_test's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kernels.code_object import compile_group

EXTRACT = """#!/bin/sh
# llvm-extract --func=KERNEL --glob=... MODULE -o OUT
kernel=${1#--func=}
grep -q "$kernel" "$3" || { echo "no function '$kernel' in module" >&2; exit 1; }
echo "$1 $2" > "$5"
"""


@pytest.fixture
def extract(tmp_path: Path) -> Path:
    path = tmp_path / "llvm-extract"
    path.write_text(EXTRACT)
    path.chmod(0o755)
    return path


def run(extract: Path, compile: str) -> subprocess.CompletedProcess:
    """Compiles a group of two by a line of shell, where $0 is the module to be written."""
    unit = extract.with_name("bwd_3") / "unit.bc"
    unit.parent.mkdir()
    command = [sys.executable, "-B", compile_group.__file__, f"--extract={extract}"]
    command += [f"--unit={unit}", *(f"--out={unit.with_name(k)}.bc" for k in ("one", "two"))]
    got = subprocess.run(
        [*command, "--", "sh", "-c", compile, str(unit)], capture_output=True, text=True
    )
    assert not unit.exists()
    return got


def test_each_kernel_is_taken_out(extract: Path) -> None:
    got = run(extract, 'echo "one two" > "$0"; echo "a warning" >&2')
    assert (got.returncode, got.stderr) == (0, "a warning\n")
    for kernel in ("one", "two"):
        text = (extract.with_name("bwd_3") / f"{kernel}.bc").read_text()
        assert text == f"--func={kernel} --glob=__hip_cuid_\n"


def test_kernel_that_the_unit_lacks(extract: Path) -> None:
    got = run(extract, 'echo one > "$0"')
    assert got.returncode == 1
    assert "bwd_3/unit.bc: no module of two: no function 'two' in module" in got.stderr


@pytest.mark.parametrize(
    ("compile", "words"),
    [
        ("kill -KILL $$", "was killed"),
        ("sh -c 'kill -KILL $$'; exit $?", "was killed"),
        ("echo 'LLVM ERROR: out of memory' >&2; kill -ABRT $$", "ran out of memory"),
        ("echo 'terminate: Out of Memory' >&2; exit 1", "ran out of memory"),
    ],
)
def test_memory_runs_out(extract: Path, compile: str, words: str) -> None:
    got = run(extract, compile)
    assert got.returncode == 1
    assert f"bwd_3: the compile of 2 kernels together {words}. " in got.stderr
    assert "--jobs=1" in got.stderr
    assert "--//kernels/ck_fmha:shortcuts=none" in got.stderr


def test_errors_read_as_the_compilers(extract: Path) -> None:
    said = "one.cpp:1:1: error: expected unqualified-id"
    got = run(extract, f"echo '{said}' >&2; exit 1")
    assert (got.returncode, got.stderr) == (1, said + "\n")
    assert not (extract.with_name("bwd_3") / "one.bc").exists()
