# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The calls of users' bug reports elsewhere, each by its name: the wheel on device arrays, against
float64. README.md beside this file lists the reports, also those that other files have."""

from __future__ import annotations

from collections.abc import Iterator

import aiter_attn
import numpy as np
import pytest

from tests.emulation.wheel import wheel_contents
from tests.emulation.wheel.problems import (
    CAUSAL,
    NO_WINDOW,
    Problem,
    Shape,
    forward_and_backward,
    mask,
)
from tests.emulation.wheel.wheel_contents import PROVIDERS
from tests.emulator.hip.hip import Hip

DTYPES = ("float16", "bfloat16")

each_arch = pytest.mark.parametrize("arch", wheel_contents.ARCHS)
each_dtype = pytest.mark.parametrize("dtype", DTYPES)
# The kernels that a call gets by itself, and Composable Kernel's where it gets AITER's.
each_choice = pytest.mark.parametrize(
    "kernels", ["fastest", "ck"] if "asm" in PROVIDERS.values() else ["fastest"]
)


@pytest.fixture(autouse=True)
def no_preference() -> Iterator[None]:
    yield
    aiter_attn.configure(kernels=None)


def varlen_forward(problem: Problem) -> None:
    """flash_attn_varlen_func on a problem of group mode, and its results against float64."""
    inputs = problem.inputs
    q, k, v = map(problem.array, (inputs.q, inputs.k, inputs.v))
    _, _, sequences = problem.mode()
    problem.hip.synchronize(problem.stream)
    out, lse, _ = aiter_attn.flash_attn_varlen_func(
        q, k, v, *sequences, **mask(problem.shape.window), return_attn_probs=True
    )
    problem.hip.synchronize()
    assert np.isfinite(problem.read("o", out).astype(np.float32)).all()
    problem.check(o=out, lse=lse)


@each_arch
@each_choice
@each_dtype
@pytest.mark.parametrize("head_size", [64, 128])
def test_aiter_2229_one_query(
    hip: Hip, arch: str, head_size: int, dtype: str, kernels: str
) -> None:
    """A token of decoding over 512 keys, 8 heads: fp16 was wrong by up to 64, and bf16 with some
    head sizes."""
    aiter_attn.configure(kernels=kernels)
    shape = Shape(((1, 512),), heads=(8, 8), group=True)
    varlen_forward(Problem(hip, shape, dtype, head_size, hip.device_of(arch)))


@each_arch
@each_dtype
@pytest.mark.parametrize("window", [NO_WINDOW, CAUSAL, (40, 0), (9, 9)], ids=str)
def test_pytorch_173469_windows_without_a_bound(
    hip: Hip, arch: str, window: tuple[int, int], dtype: str
) -> None:
    """A bound of -1 was taken for a window that ends before its row, and all of out was NaN."""
    shape = Shape(((48, 48), (1, 1), (129, 129)), heads=(2, 2), window=window, group=True)
    varlen_forward(Problem(hip, shape, dtype, 64, hip.device_of(arch)))


@each_arch
@each_choice
@each_dtype
@pytest.mark.parametrize("head_size", [64, 128])
@pytest.mark.parametrize(("window", "heads"), [(NO_WINDOW, (2, 1)), (CAUSAL, (2, 2))], ids=str)
def test_rocm_libraries_5790_5915_5991_sequences_without_queries(
    hip: Hip,
    arch: str,
    window: tuple[int, int],
    heads: tuple[int, int],
    head_size: int,
    dtype: str,
    kernels: str,
) -> None:
    """dk and dv of keys without a query were NaN (5790). With the early exit that mends it, those
    of the other sequences were wrong, as registers had two uses (5915; 5991, on gfx950)."""
    aiter_attn.configure(kernels=kernels)
    lengths = ((0, 70), (33, 40), (0, 1), (0, 0), (65, 33))
    shape = Shape(lengths, heads=heads, window=window, group=True)
    forward_and_backward(Problem(hip, shape, dtype, head_size, hip.device_of(arch)))


@each_arch
@each_choice
@pytest.mark.parametrize("heads", [(4, 4), (12, 4)], ids=["4 heads", "heads 12 to 4"])
def test_aiter_767_1024_tokens(hip: Hip, arch: str, heads: tuple[int, int], kernels: str) -> None:
    """A core dump, or wrong numbers, after an update."""
    aiter_attn.configure(kernels=kernels)
    shape = Shape(((1024, 1024),), heads=heads)
    problem = Problem(hip, shape, "bfloat16", 128, hip.device_of(arch))
    q, k, v = map(problem.array, (problem.inputs.q, problem.inputs.k, problem.inputs.v))
    out, lse = aiter_attn.mha_fwd(q, k, v, stream=problem.stream)
    hip.synchronize(problem.stream)
    problem.check(o=out, lse=lse)


@each_arch
@each_dtype
@pytest.mark.parametrize("head_size", [32, 64])
def test_vllm_34570_one_query_with_a_window(
    hip: Hip, arch: str, head_size: int, dtype: str
) -> None:
    """A token of decoding with a sliding window, and with a head size below 64, whose product with
    v was left out."""
    shape = Shape(((1, 300), (1, 40), (1, 129)), heads=(8, 2), window=(63, 0), group=True)
    varlen_forward(Problem(hip, shape, dtype, head_size, hip.device_of(arch)))
