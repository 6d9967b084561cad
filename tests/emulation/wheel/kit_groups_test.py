# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The slim wheel and the compile kit: a member of a compile group that is not proven is compiled by
itself, under the key of that, and serves until its exact object is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import aiter_attn

from tests.emulation.wheel.fp8_calls import NO_BIAS, Call, check
from tests.emulation.wheel.kit_cache import ARCH, CACHE, cached, manifest
from tests.emulation.wheel.problems import CAUSAL
from tests.emulator.hip.hip import Hip

KIT = f"the compile kit '{Path(aiter_attn.__file__).parents[1] / 'aiter_attn_compile_kit'}'"
SHAPE = (2, 77, 2, 64)
# By one of four kernels of a compile group that groups/lock.json has no proof of.
OF_A_GROUP = f"{ARCH} fmha_fwd_d64_fp8bf16_batch"


def program(*arguments: str, **environment: str) -> str:
    """The output of `aiter-attn`, in a process of its own."""
    path = os.pathsep.join([str(Path(aiter_attn.__file__).parents[1]), *sys.path])
    return subprocess.run(
        [sys.executable, "-m", "aiter_attn", *arguments],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def info(**environment: str) -> dict[str, dict[str, Any]]:
    """Key -> a kernel's facts."""
    told = json.loads(program("info", "--json", **environment))
    return {kernel["key"]: kernel for kernel in told["kernels"]}


def explanation() -> str:
    shapes = (SHAPE,) * 3
    return aiter_attn.explain(
        *shapes, causal=True, dtype="float8_e4m3fnuz", out_dtype="bfloat16", arch=ARCH
    ).text


def test_the_kit_serves_every_kernel_and_says_by_which_object() -> None:
    kernels = info()
    # AITER's come as objects.
    compiled = [kernel for kernel in kernels.values() if kernel["provider"] != "asm"]
    assert {kernel["found_in"] for kernel in compiled} == {KIT}
    plain = {kernel["found_key"] for kernel in compiled} - kernels.keys()
    assert plain  # where the lock proves them all, this test needs another set
    assert not plain & manifest().keys()
    told = explanation()
    assert f"  bytes from {KIT}, its plain compile, key " in told
    assert f"    not from {KIT}: compiles single kernels, but this object was" in told
    assert not cached()


def test_a_member_is_compiled_by_itself_and_its_numbers_are_right(hip: Hip) -> None:
    check(Call(hip, ARCH, (77, 130), CAUSAL, NO_BIAS, o="bf16"))
    made = cached()
    kernels = info()
    plain = {kernel["found_key"] for kernel in kernels.values()} - kernels.keys() - {None}
    assert made.keys() & plain
    assert made.keys() <= plain | manifest().keys()
    # Another process finds it in the cache, and needs no kit for it.
    for environment in ({}, {"AITER_ATTN_ON_DEMAND": "cache"}):
        kernels = info(**environment)
        found = [kernel for kernel in kernels.values() if kernel["found_key"] in made]
        assert len(found) == len(made)
        for kernel in found:
            assert kernel["found_in"].startswith(f"the cache '{CACHE}/code-objects'")
    assert "plain compile" in explanation()


def test_an_exact_object_comes_first_wherever_it_appears(tmp_path: Path) -> None:
    for path in os.environ["PACK_WHEELS"].split():
        with zipfile.ZipFile(path) as wheel:
            wheel.extractall(tmp_path)
    packs = tmp_path / "aiter_attn_kernels"
    before = cached()
    kernels = info(AITER_ATTN_PACK_PATH=str(packs))
    assert all(kernel["found_in"].startswith(f"pack '{packs}/") for kernel in kernels.values())
    assert all(kernel["found_key"] == key for key, kernel in kernels.items())
    assert cached() == before


def test_the_list_of_the_cache_names_the_kernel() -> None:
    listed = program("cache", "ls")
    assert OF_A_GROUP in listed
    assert ", by itself\n" in listed
    assert "of no kernel" not in listed
