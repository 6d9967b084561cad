# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The slim wheel on a machine that has ROCm's run time alone: its hipRTC compiles the kernels that
are asked for, from the sources in the wheel, under keys of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import aiter_attn
import pytest
from aiter_attn import _C

from tests.emulation.wheel.compiler import HIPRTC, load_compiler
from tests.emulation.wheel.featured import Featured
from tests.emulation.wheel.kit_cache import ARCH, CACHE, cached, manifest
from tests.emulation.wheel.problems import CAUSAL, Problem, Shape, forward_and_backward
from tests.emulator.hip.hip import Hip

load_compiler(CACHE)


_PROGRAM = """
import runpy
from tests.emulation.wheel.compiler import load_libraries
load_libraries()
runpy.run_module("aiter_attn", run_name="__main__", alter_sys=True)
"""


def program(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`aiter-attn`, in a process of its own."""
    path = os.pathsep.join([str(Path(aiter_attn.__file__).parents[1]), *sys.path])
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM, *arguments],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_it_is_found_and_says_what_it_would_do() -> None:
    told = aiter_attn.explain(*((1, 8, 1, 64),) * 3, causal=True, dtype="float16", arch=ARCH).text
    assert "  bytes from hipRTC, its compile by hipRTC, key " in told
    assert f"by hipRTC 9.0 ({HIPRTC}) compiles it at its first use" in told
    assert not cached()


def test_both_passes_are_right_by_kernels_that_it_compiles(
    hip: Hip, capfd: pytest.CaptureFixture[str]
) -> None:
    shape = Shape(((77, 130),), heads=(2, 1), window=CAUSAL)
    forward_and_backward(Problem(hip, shape, "float16", 64, hip.device_of(ARCH)))
    made = cached()
    # Forward; delta, dq and dk and dv, their sums over heads, and dq's conversion.
    assert len(made) >= 5
    assert not made.keys() & manifest().keys()
    assert not list((CACHE / "compiling").iterdir())
    said = capfd.readouterr().err
    assert "aiter-attn: compiling fmha_fwd_d64_fp16_batch_" in said
    assert ", then 3 more kernels\n" in said
    for key in made:
        assert len(_C.code_object(key)) > 1000


def test_a_kernel_beyond_the_set_is_right(hip: Hip) -> None:
    problem = Featured(hip, Shape(((77, 130),), (2, 1), CAUSAL), ARCH, bias="alibi")
    q, k, v, _dout = problem.arrays()
    out, lse = aiter_attn.mha_fwd(q, k, v, **problem.options)
    problem.hip.synchronize(problem.stream)
    problem.check(o=out, lse=lse)


def test_the_next_process_finds_them_and_compiles_the_same(tmp_path: Path) -> None:
    wanted = next(k for k in aiter_attn.kernels() if k["kind"] == "sum_heads" and k["arch"] == ARCH)
    file = tmp_path / "list"
    file.write_text(f"{ARCH} {wanted['name']}\n")
    before = cached()
    listed = program("prebuild", "list", str(file))
    assert "1 kernels: 1 are there" in listed.stdout, listed.stdout + listed.stderr
    other = {"AITER_ATTN_CACHE_DIR": str(tmp_path / "cache")}
    built = program("prebuild", "build", str(file), **other)
    assert built.returncode == 0, built.stdout + built.stderr

    (again,) = (tmp_path / "cache/code-objects").glob("*.object")
    assert again.read_bytes() == (CACHE / "code-objects" / again.name).read_bytes()
    assert cached() == before
    # Where nothing may be compiled, the cache still serves.
    kept = program("prebuild", "verify", str(file), AITER_ATTN_ON_DEMAND="cache")
    assert kept.returncode == 0, kept.stdout
    never = {**other, "AITER_ATTN_CACHE_DIR": str(tmp_path / "none"), "AITER_ATTN_RTC": "0"}
    refused = program("prebuild", "verify", str(file), **never)
    assert refused.returncode == 1
    assert "must not compile, by AITER_ATTN_RTC=0: unset it" in refused.stdout, refused.stdout


def test_without_it_the_reason_and_the_next_step_are_said(tmp_path: Path) -> None:
    nothing = {"AITER_ATTN_HIPRTC_LIBRARY": "/nowhere/libhiprtc.so"}
    refused = program("prebuild", "verify", "smoke", "--arch", ARCH, **nothing)
    assert refused.returncode == 1
    assert "hipRTC: its compile by hipRTC: " in refused.stdout
    assert "AITER_ATTN_HIPRTC_LIBRARY" in refused.stdout
    told = json.loads(program("info", "--json", **nothing).stdout)
    of_ck = [k for k in told["kernels"] if k["arch"] == ARCH]
    assert of_ck and not any(k["found_in"] for k in of_ck)
