# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The wheel's own float64 attention, which selftest and validate hold kernels to, against the one
of the tests."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from aiter_attn._cli import selftest

from tests.support.python import attention as float64

QUERIES, KEYS, HEADS, HEADS_K, SIZE = 37, 53, 4, 2, 16


def arrays() -> tuple[Any, ...]:
    generator = numpy.random.default_rng(5)
    draw = generator.standard_normal
    keys = (KEYS, HEADS_K, SIZE)
    return draw((QUERIES, HEADS, SIZE)), draw(keys), draw(keys), draw((QUERIES, HEADS, SIZE))


def kept() -> Any:
    generator = numpy.random.default_rng(6)
    return (generator.random((HEADS, QUERIES, KEYS)) > 0.3) / 0.7


def alibi(slopes: Any, causal: bool) -> Any:
    columns = numpy.arange(KEYS)[None, None, :]
    rows = numpy.arange(QUERIES)[None, :, None] + KEYS - QUERIES
    return slopes[:, None, None] * (columns if causal else -abs(rows - columns))


SLOPES = numpy.array([0.5, 0.25, 0.125, 0.0625])
SINK = numpy.array([0.5, -2.0, 3.0, 0.0])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"causal": True},
        {"window": (7, 3)},
        {"causal": True, "window": (20, -1)},
        {"sink": SINK},
        {"kept": kept(), "causal": True},
        {"sink": SINK, "kept": kept(), "window": (9, 0)},
    ],
    ids=str,
)
def test_both_passes_agree(options: dict[str, Any]) -> None:
    q, k, v, dout = arrays()
    given = {"causal": False, "window": (-1, -1)} | options
    for out in (None, float64.attention(q, k, v, **given)[0]):
        got = selftest.reference(numpy, q, k, v, dout, out, **given)
        want = [*float64.attention(q, k, v, **given)]
        want += float64.gradients(dout, q, k, v, **given)[:3]
        for one, other in zip(got, want, strict=True):
            numpy.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("causal", [False, True])
def test_biases_and_a_soft_cap_of_the_forward_pass_agree(causal: bool) -> None:
    q, k, v, dout = arrays()
    for options, same in (
        ({"bias": alibi(SLOPES, causal)}, {"slopes": SLOPES}),
        ({"softcap": 2.5}, {"softcap": 2.5}),
    ):
        got = selftest.reference(
            numpy, q, k, v, dout, None, causal=causal, window=(-1, -1), **options
        )
        want = float64.attention(q, k, v, causal=causal, **same)
        for one, other in zip(got[:2], want, strict=True):
            numpy.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


def test_a_bias_has_the_gradients_of_scores_that_it_shifts() -> None:
    """Against differences of the forward pass: the tests' reference has no gradient of it."""
    q, k, v, dout = arrays()
    bias = numpy.random.default_rng(7).standard_normal((HEADS, QUERIES, KEYS))

    def forward(at: Any) -> float:
        out = selftest.reference(
            numpy, at, k, v, dout, None, causal=True, window=(-1, -1), bias=bias
        )[0]
        return float((out * dout).sum())

    dq = selftest.reference(numpy, q, k, v, dout, None, causal=True, window=(-1, -1), bias=bias)[2]
    step = 1e-6
    for place in ((0, 0, 0), (17, 1, 5), (36, 3, 15)):
        moved = numpy.zeros_like(q)
        moved[place] = step
        difference = (forward(q + moved) - forward(q - moved)) / (2 * step)
        assert dq[place] == pytest.approx(difference, rel=1e-6, abs=1e-8)
