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
# llvm-extract --func=KERNEL --glob=... MODULE -S -o -
kernel=${1#--func=}
grep -q "$kernel" "$3" || { echo "no function '$kernel' in module" >&2; exit 1; }
[ "$4" = -S ] && exec cat "$3"
echo "$1 $2" > "$5"
"""


@pytest.fixture
def extract(tmp_path: Path) -> Path:
    path = tmp_path / "llvm-extract"
    path.write_text(EXTRACT)
    path.chmod(0o755)
    return path


# A compiler: COMPILER -o OUT SOURCE. It runs the lines of shell that stand in the source.
COMPILER = """#!/bin/sh
exec sh "$3" "$2"
"""
MEMBERS = ("one", "two")


def run(extract: Path, unit_source: str, **members: str) -> subprocess.CompletedProcess:
    """Compiles a group of two. A source is lines of shell, where $1 is the module to be written."""
    folder = extract.with_name("bwd_3")
    folder.mkdir()
    compiler = extract.with_name("clang")
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    for name, text in {"unit": unit_source, **members}.items():
        (folder / f"{name}.cpp").write_text(text)
    unit = folder / "unit.bc"
    command = [sys.executable, "-B", compile_group.__file__, f"--extract={extract}"]
    command += [f"--unit={unit}", *(f"--out={folder}/{name}.bc" for name in MEMBERS)]
    command += [f"--source={folder}/{name}.cpp" for name in MEMBERS]
    got = subprocess.run(
        [*command, "--", compiler, "-o", unit, folder / "unit.cpp"], capture_output=True, text=True
    )
    assert not unit.exists()
    return got


def test_each_kernel_is_taken_out(extract: Path) -> None:
    got = run(extract, 'echo "one two" > "$1"; echo "a warning" >&2')
    assert (got.returncode, got.stderr) == (0, "a warning\n")
    for kernel in MEMBERS:
        text = (extract.with_name("bwd_3") / f"{kernel}.bc").read_text()
        assert text == f"--func={kernel} --glob=__hip_cuid_\n"


# Modules of text have these in any order.
CALLS = """define amdgpu_kernel void @one() {
declare noundef i32 @llvm.amdgcn.workitem.id.x() #1
declare void @llvm.memcpy.p5.p4.i64(ptr addrspace(5) noalias writeonly captures(none))
"""
MISSING = "declare hidden fastcc void @_ZN7ck_tile6to_lse.1Ef(float noundef) unnamed_addr #2\n"


@pytest.mark.parametrize("calls", [False, True])
def test_a_kernel_that_calls_a_function_of_the_unit_is_compiled_by_itself(
    extract: Path, calls: bool
) -> None:
    unit = CALLS + "define @two\n" + MISSING * calls
    got = run(
        extract,
        f"cat > \"$1\" <<'end'\n{unit}end",
        one='echo "one alone" > "$1"',
        two='echo "two alone" > "$1"',
    )
    assert got.returncode == 0
    folder = extract.with_name("bwd_3")
    if calls:
        assert got.stderr.splitlines() == [
            f"{name} calls _ZN7ck_tile6to_lse.1Ef: it is compiled by itself" for name in MEMBERS
        ]
        assert (folder / "one.bc").read_text() == "one alone\n"
        assert (folder / "two.bc").read_text() == "two alone\n"
    else:
        assert not got.stderr
        assert (folder / "one.bc").read_text() == "--func=one --glob=__hip_cuid_\n"


def test_kernel_that_the_unit_lacks(extract: Path) -> None:
    got = run(extract, 'echo one > "$1"')
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


SAID = "one.cpp:1:1: error: expected unqualified-id"
WRONG = f"echo '{SAID}' >&2; exit 1"


def test_a_member_that_is_wrong_takes_no_other_along(extract: Path) -> None:
    got = run(extract, WRONG, one=WRONG, two='echo "two alone" > "$1"')
    assert got.returncode == 0
    assert got.stderr == f"{SAID}\n{SAID}\n" + (
        "one does not compile; the other 1 of its group bwd_3, each by itself, do\n"
    )
    folder = extract.with_name("bwd_3")
    assert (folder / "two.bc").read_text() == "two alone\n"
    assert "one does not compile" in (folder / "one.bc").read_text()


def test_where_none_compiles_the_group_fails(extract: Path) -> None:
    got = run(extract, WRONG, one=WRONG, two="exit 1")
    assert got.returncode == 1
    assert SAID in got.stderr
