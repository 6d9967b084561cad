# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A slim wheel that knows more kernels than were built: which calls these serve, what it says of
them without a compiler, and the object that the compile kit makes."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import aiter_attn
from aiter_attn import _C
from aiter_attn._cli import blob_names

from tests.emulation.wheel.featured import Featured
from tests.emulation.wheel.kit_cache import ARCH, CACHE, cached, manifest
from tests.emulation.wheel.problems import CAUSAL, Shape
from tests.emulator.hip.hip import Hip

SHAPE = (2, 77, 2, 64)
SITE = Path(aiter_attn.__file__).parents[1]


def program(*arguments: str, **environment: str) -> str:
    """The output of `aiter-attn`, in a process of its own."""
    path = os.pathsep.join([str(SITE), *sys.path])
    return subprocess.run(
        [sys.executable, "-m", "aiter_attn", *arguments],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def test_a_call_that_the_build_serves_has_the_kernel_of_the_build() -> None:
    explained = aiter_attn.explain(*(SHAPE,) * 3, causal=True, dtype="float16", arch=ARCH)
    (kernel,) = explained.kernels
    assert kernel["key"] in manifest()
    assert " for calls that no kernel of the build serves, e.g. fmha_fwd_d192_" in explained.text


def test_the_table_has_more_kernels_than_were_built_for_every_arch() -> None:
    kernels = aiter_attn.kernels()
    unbuilt = [kernel for kernel in kernels if not kernel["code_object_size"]]
    assert len(unbuilt) > 3 * len(kernels) / 4
    assert {kernel["arch"] for kernel in unbuilt} == {
        "gfx90a", "gfx942", "gfx950", "gfx1200", "gfx1201"
    }  # fmt: skip
    assert not {kernel["key"] for kernel in unbuilt} & manifest().keys()


def test_without_a_compiler_it_is_said_which_one_to_install() -> None:
    asked = f"explain --arch {ARCH} --dtype fp16 --seqlen-q 77 --head-size 64 --causal --alibi"
    told = program(*asked.split(), AITER_ATTN_COMPILE_KIT="/nowhere/kit")
    version = aiter_attn.__version__
    wanted = (
        f"bytes from nowhere: to have it compiled here, install aiter-attn-compile-kit=={version}"
    )
    assert wanted in " ".join(told.split())
    assert "aiter-attn-kernels" not in told
    assert not cached()


def test_lists_of_prebuild_may_ask_for_it(tmp_path: Path) -> None:
    (name,) = (
        kernel["name"]
        for kernel in aiter_attn.kernels()
        if kernel["arch"] == ARCH and re.match(r"fmha_fwd_d64_fp16_batch_.*_alibi_", kernel["name"])
    )
    blob = blob_names.blob_name(name, ARCH)
    assert blob is not None
    for line in (blob, f"{ARCH} {name}"):
        file = tmp_path / "list"
        file.write_text(line + "\n")
        listed = program("prebuild", "list", str(file), "--arch", ARCH)
        kit = f"the compile kit '{SITE}/aiter_attn_compile_kit'"
        assert f"{ARCH} {name}: {kit}, to be compiled\n" in listed
        assert f"1 kernels: 0 are there, 1 to be compiled by {kit}, 0 cannot be had" in listed
    # The set is what was built.
    assert f"\n{len(manifest())} kernels: " in program("prebuild", "list", "smoke", "--arch", ARCH)


def test_the_kit_makes_the_object_of_a_build(hip: Hip) -> None:
    problem = Featured(hip, Shape(((77, 130),), (2, 1), CAUSAL), ARCH, bias="alibi")
    q, k, v, _dout = problem.arrays()
    out, lse = aiter_attn.mha_fwd(q, k, v, **problem.options)
    problem.hip.synchronize(problem.stream)
    problem.check(o=out, lse=lse)
    ((key, digest),) = cached().items()
    (built,) = (Path(path) for path in os.environ["CODE_OBJECT"].split())
    assert digest == hashlib.sha256(built.read_bytes()).hexdigest()
    assert key not in manifest()
    provider, _text = _C.find_code_object(key)
    assert provider is not None
    assert provider.startswith(f"the cache '{CACHE}/code-objects'")
