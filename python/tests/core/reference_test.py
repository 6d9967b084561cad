# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The float64 reference that `selftest` compares with: against that of the kernels' tests, which
was written apart from it, and its gradients against numerical derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
from aiter_attn._cli import selftest

from tests.emulation.harness import reference
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, Case
from tests.support.python import attention

SHAPES = [
    pytest.param(5, 7, 4, 2, id="grouped heads"),
    pytest.param(7, 4, 2, 2, id="more queries than keys"),
    pytest.param(1, 6, 1, 1, id="one query"),
]
MASKS = [
    pytest.param(False, (-1, -1), id="all"),
    pytest.param(True, (-1, -1), id="causal"),
    pytest.param(True, (2, 5), id="causal, window"),
    pytest.param(False, (1, 2), id="window"),
    pytest.param(False, (-1, 0), id="right"),
    pytest.param(False, (0, -1), id="left"),
]


def draw(seqlen_q: int, seqlen_k: int, heads_q: int, heads_k: int) -> tuple[Any, ...]:
    generator = numpy.random.default_rng(0)
    return (
        generator.standard_normal((seqlen_q, heads_q, 6)),
        generator.standard_normal((seqlen_k, heads_k, 6)),
        generator.standard_normal((seqlen_k, heads_k, 3)),
        generator.standard_normal((seqlen_q, heads_q, 3)),
    )


@pytest.mark.parametrize("shape", [p.values for p in SHAPES], ids=[p.id for p in SHAPES])
@pytest.mark.parametrize(("causal", "window"), MASKS)
def test_all_references_agree(shape: Any, causal: bool, window: tuple[int, int]) -> None:
    seqlen_q, seqlen_k, heads_q, heads_k = shape
    window = (window[0], 0) if causal else window
    case = Case("", ((seqlen_q, seqlen_k),), heads_q, heads_k, MASK_BOTTOM_RIGHT, window)
    inputs = reference.draw(case, "fp16", (16, 8), seed=0, backward=True)
    right = reference.reference(case, "fp16", inputs)
    right |= reference.gradients(case, "fp16", right)
    stored_o = reference.to_storage(right["o"].value, "fp16")
    arrays = (inputs.q, inputs.k, inputs.v, inputs.dout, stored_o)
    q, k, v, dout, stored = (reference.from_storage(x, "fp16") for x in arrays)
    results = selftest.reference(numpy, q, k, v, dout, stored, causal=causal, window=window)
    for name, result in zip(("o", "lse", "dq", "dk", "dv"), results, strict=True):
        numpy.testing.assert_allclose(result, right[name].value, rtol=1e-12, atol=1e-12)
    options: Any = {"causal": causal, "window": window}
    passes = attention.attention(q, k, v, **options)
    passes += attention.gradients(dout, q, k, v, **options)
    exact = selftest.reference(numpy, q, k, v, dout, passes[0], **options)
    for result, other in zip(passes, exact, strict=True):
        numpy.testing.assert_allclose(result, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [p.values for p in SHAPES], ids=[p.id for p in SHAPES])
@pytest.mark.parametrize(("causal", "window"), MASKS)
def test_backward_is_the_derivative(shape: Any, causal: bool, window: tuple[int, int]) -> None:
    arrays = draw(*shape)
    dout = arrays[3]
    gradients = selftest.reference(numpy, *arrays, None, causal=causal, window=window)[2:]
    step = 1e-5
    for which, gradient in enumerate(gradients):
        expected = numpy.zeros_like(gradient)
        for index in numpy.ndindex(*gradient.shape):
            losses = []
            for sign in (1, -1):
                moved = [x.copy() for x in arrays[:3]]
                moved[which][index] += sign * step
                out = selftest.reference(numpy, *moved, dout, None, causal=causal, window=window)[0]
                losses.append(float((out * dout).sum()))
            expected[index] = (losses[0] - losses[1]) / (2 * step)
        numpy.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)


def test_an_ulp_is_that_of_the_dtype() -> None:
    assert selftest.ulp_error(numpy, [1 + 2**-10], [1.0], "float16") == 1.0
    assert selftest.ulp_error(numpy, [4 + 2**-7], [4.0], "bfloat16") == 0.25
    assert selftest.ulp_error(numpy, [-math.inf, 2.0], [-math.inf, 2.0], "float32") == 0.0
    assert selftest.ulp_error(numpy, [0.0], [-math.inf], "float32") == math.inf
    assert selftest.ulp_error(numpy, [math.nan], [0.0], "float32") == math.inf
