# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The slim wheel on a machine with a ROCm for developers: its clang compiles the kernels that are
asked for, from the sources in the wheel, under keys of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import aiter_attn
from aiter_attn import _C

from tests.emulation.wheel.kit_cache import ARCH, CACHE, cached, manifest
from tests.emulation.wheel.problems import CAUSAL, Problem, Shape, forward_and_backward
from tests.emulation.wheel.rocm import ROCM
from tests.emulator.hip.hip import Hip

CLANG = f"amdclang '{ROCM}/bin/amdclang++'"


def program(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`aiter-attn`, in a process of its own."""
    path = os.pathsep.join([str(Path(aiter_attn.__file__).parents[1]), *sys.path])
    return subprocess.run(
        [sys.executable, "-m", "aiter_attn", *arguments],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def places(**environment: str) -> dict[str, tuple[str | None, str | None]]:
    """Key -> where the kernel's object is found, and that object's key; of kernels with sources."""
    told = json.loads(program("info", "--json", **environment).stdout)
    return {
        kernel["key"]: (kernel["found_in"], kernel["found_key"])
        for kernel in told["kernels"]
        if kernel["provider"] != "asm" and kernel["arch"] == ARCH
    }


def test_the_wheel_has_the_sources_and_is_small() -> None:
    wheel = Path(os.environ["WHEEL"])
    assert wheel.stat().st_size < 10 << 20
    sources = zipfile.ZipFile(wheel).getinfo("aiter_attn/kernel_sources.attnpack")
    print(f"sources: {sources.compress_size} bytes of the wheel's {wheel.stat().st_size}")
    assert sources.compress_size < 1 << 20


def test_rocms_clang_is_found_and_says_what_it_would_do() -> None:
    found = places()
    assert found and {place for place, _key in found.values()} == {CLANG}
    keys = {key for _place, key in found.values()}
    assert len(keys) == len(found) and not keys & found.keys()
    told = aiter_attn.explain(*((1, 8, 1, 64),) * 3, causal=True, dtype="float16", arch=ARCH).text
    assert f"  bytes from {CLANG}, its compile by {CLANG}, key " in told
    assert not cached()


def test_prebuild_has_it_compile_and_the_next_process_finds_it(tmp_path: Path) -> None:
    wanted = next(k for k in aiter_attn.kernels() if k["kind"] == "sum_heads" and k["arch"] == ARCH)
    file = tmp_path / "list"
    file.write_text(f"{ARCH} {wanted['name']}\n")
    own = places()[wanted["key"]][1]
    built = program("prebuild", "build", str(file))
    assert built.returncode == 0, built.stdout + built.stderr
    assert set(cached()) == {own}
    assert program("prebuild", "verify", str(file)).returncode == 0
    for mode in ("compile", "cache"):
        place, key = places(AITER_ATTN_ON_DEMAND=mode)[wanted["key"]]
        assert place is not None
        assert place.startswith(f"the cache '{CACHE}/code-objects'")
        assert key == own
    refused = program("prebuild", "verify", str(file), AITER_ATTN_ON_DEMAND="off")
    assert refused.returncode == 1
    assert "must not be asked, as AITER_ATTN_ON_DEMAND is 'off'" in refused.stdout


def test_both_passes_are_right_by_kernels_that_it_compiles(hip: Hip) -> None:
    shape = Shape(((77, 130),), heads=(2, 1), window=CAUSAL)
    forward_and_backward(Problem(hip, shape, "float16", 64, hip.device_of(ARCH)))
    made = cached()
    # Forward; delta, dq and dk and dv, their sums over heads, and dq's conversion.
    assert len(made) >= 5
    found = places()
    assert made.keys() <= {key for _place, key in found.values()}
    assert not made.keys() & manifest().keys()
    assert not list((CACHE / "compiling").iterdir())
    start = time.monotonic()
    for key in made:
        assert len(_C.code_object(key)) > 1000
    print(f"{len(made)} objects from the cache in {1000 * (time.monotonic() - start):.1f} ms")


def test_another_rocm_is_another_compiler(tmp_path: Path) -> None:
    none = program("info", ROCM_PATH=str(tmp_path))
    assert none.returncode == 0
    missing = program("prebuild", "verify", "smoke", "--arch", ARCH, ROCM_PATH=str(tmp_path))
    assert f"ROCM_PATH is '{tmp_path}', which has no bin/amdclang++" in missing.stdout
    relative = program("prebuild", "verify", "smoke", ROCM_PATH="rocm")
    assert relative.returncode == 1
    assert "ROCM_PATH is 'rocm', but must be an absolute path" in relative.stderr
