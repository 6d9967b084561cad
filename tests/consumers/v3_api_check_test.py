# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""v3_api_check: 1 for exactly those calls that AITER's assembly serves without it, else -1."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.consumers.attention import Attention, Consumer
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, Case
from tests.emulator.hip.emulated_hip import Runtime
from tests.emulator.hip.hip import Hip

_MANIFEST = json.loads(Path(os.environ["MANIFEST"]).read_text(encoding="utf-8"))
_PROVIDERS = {kernel["symbol"]: kernel["provider"] for kernel in _MANIFEST["instances"]}
_CAUSAL = {"mask": MASK_BOTTOM_RIGHT, "window": (-1, 0)}
_SIZES = (128, 128)
# Case, dtype, whether AITER's assembly for gfx942 serves forward.
_FORWARD = [
    (Case("tiles", ((257, 300),), 1, 1), "bf16", True),
    (Case("causal", ((300, 40),), 1, 1, **_CAUSAL), "bf16", True),
    (Case("one tile", ((128, 300),), 1, 1), "bf16", False),
    (Case("window", ((257, 300),), 1, 1, mask=MASK_BOTTOM_RIGHT, window=(64, 0)), "bf16", False),
    (Case("fp16", ((257, 300),), 1, 1), "fp16", False),
]


def by_asm(hip: Hip, runtime: Runtime, problem: Attention) -> bool:
    """Whether launches since the last call of this, which forgets them, were of the assembly's."""
    hip.synchronize(problem.stream)
    symbols = [launch.symbol for launch in runtime.launches]
    runtime.launches.clear()
    return any(_PROVIDERS.get(symbol) == "asm" for symbol in symbols)


def has_asm(arch: str) -> bool:
    kernels = (k for k in _MANIFEST["instances"] if k["provider"] == "asm")
    return any(arch in kernel["code_objects"] for kernel in kernels)


@pytest.mark.parametrize(("case", "dtype", "served"), _FORWARD, ids=lambda x: getattr(x, "name", x))
def test_forward(
    hip: Hip, consumer: Consumer, arch: str, runtime: Runtime, case: Case, dtype: str, served: bool
) -> None:
    problem = Attention(hip, consumer, arch, case, dtype=dtype, sizes=_SIZES, use_asm=True)
    problem.call.only_check = True
    answer = problem.forward()
    assert not runtime.launches
    problem.call.only_check = False
    done = problem.forward()
    assert answer == (1 if by_asm(hip, runtime, problem) else -1)
    if done == 0:
        problem.check("o", "lse")
    if arch == "gfx942":
        assert (answer == 1) == (served and has_asm(arch))


def test_backward(hip: Hip, consumer: Consumer, arch: str, runtime: Runtime) -> None:
    case = Case("causal", ((200, 200),), 1, 1, **_CAUSAL)
    problem = Attention(hip, consumer, arch, case, dtype="bf16", sizes=_SIZES, use_asm=True)
    problem.call.only_check = True
    answer = problem.backward()
    assert not runtime.launches
    problem.call.only_check = False
    if problem.forward() != 0:
        assert answer == -1
        return
    by_asm(hip, runtime, problem)
    done = problem.backward()
    assert answer == (1 if by_asm(hip, runtime, problem) else -1)
    if done == 0:
        problem.check()
    if arch == "gfx942" and _MANIFEST["variant_set"] == "core":
        assert answer == 1


def test_backward_of_what_the_assembly_lacks(hip: Hip, consumer: Consumer, arch: str) -> None:
    case = Case("causal", ((33, 47),), 1, 1, **_CAUSAL)
    problem = Attention(hip, consumer, arch, case, sizes=(96, 64), use_asm=True, only_check=True)
    assert problem.backward() == -1
