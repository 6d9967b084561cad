# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""AITER's assembly for gfx950 through a wheel: forward and backward calls against float64. Calls
that its kernels may get wrong (docs/asm-findings.md) are Composable Kernel's."""

from __future__ import annotations

import pytest

from tests.emulation.wheel.asm_calls import (
    FILLED,
    backward_by,
    documented_calls,
    expect_backward,
    expect_explained,
    forward,
    settled,
    symbol,
)
from tests.emulation.wheel.problems import CAUSAL, Shape
from tests.emulation.wheel.wheel_contents import PROVIDERS
from tests.emulator.hip import emulated_hip
from tests.emulator.hip.hip import Hip

__all__ = ["settled"]


@pytest.mark.parametrize(("shape", "stem"), [
    (Shape(((257, 300),) * 2, heads=(4, 2)), "fmha_fwd_hd128_bf16"),
    (Shape(((256, 300),), heads=(3, 1), window=CAUSAL), "fmha_fwd_hd128_bf16_causal"),
    (Shape(((256, 300), (0, 7), (255, 64), (5, 0)), heads=(4, 2), window=CAUSAL, group=True),
     "fmha_fwd_hd128_bf16_causal_group"),
], ids=str)  # fmt: skip
def test_asm_serves_forward(
    hip: Hip, runtime: emulated_hip.Runtime, shape: Shape, stem: str
) -> None:
    assert forward(hip, runtime, shape, "bfloat16") == [symbol(stem)]


def test_sequences_without_keys(hip: Hip, runtime: emulated_hip.Runtime) -> None:
    """AITER's kernel leaves their rows undefined, and ours fills them: defect U."""
    shape = Shape(((257, 300), (17, 0), (3, 31)), heads=(4, 2), group=True)
    launched = forward(hip, runtime, shape, "bfloat16")
    assert launched == [symbol("fmha_fwd_hd128_bf16_group"), FILLED]


def test_two_tiles_are_composable_kernels(hip: Hip, runtime: emulated_hip.Runtime) -> None:
    """Forward, defect P, and backward, defect Q."""
    shape = Shape(((257, 300),), heads=(2, 1), window=CAUSAL)
    assert {PROVIDERS[s] for s in forward(hip, runtime, shape, "bfloat16")} == {"ck"}
    assert {PROVIDERS[s] for s in backward_by(hip, runtime, shape, 128, None)} == {"ck", "own"}


@pytest.mark.parametrize(("shape", "stem"), [
    (Shape(((130, 252),) * 2, heads=(4, 2)), "fmha_bwd_hd128_bf16_a32_psskddv"),
    (Shape(((200, 200),), heads=(2, 1), window=CAUSAL), "fmha_bwd_hd128_bf16_causal_a32_psskddv"),
    (Shape(((230, 40),), heads=(3, 3), window=CAUSAL), "fmha_bwd_hd128_bf16_causal_br_a32_psskddv"),
    (Shape(((65, 200), (0, 7), (33, 64), (5, 0)), heads=(4, 2), window=CAUSAL, group=True),
     "fmha_bwd_hd128_bf16_causal_br_a32_psskddv_group"),
    (Shape(((65, 300), (33, 64)), heads=(2, 2), group=True),
     "fmha_bwd_hd128_bf16_a32_psskddv_group"),
], ids=str)  # fmt: skip
def test_asm_serves_backward(
    hip: Hip, runtime: emulated_hip.Runtime, shape: Shape, stem: str
) -> None:
    expect_backward(hip, runtime, shape, 128, stem)


@pytest.mark.parametrize(("arguments", "served", "why"), documented_calls("gfx950"))
def test_documented_calls(
    capsys: pytest.CaptureFixture[str], arguments: str, served: str, why: str
) -> None:
    expect_explained(capsys, arguments, served, why)
