# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The oracle of norms is right itself: by hand, and backward as the slope of forward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

from tests.hostile import norm_oracle

RANDOM = numpy.random.default_rng(1)


def slope(loss: Callable[[Any], float], at: Any) -> Any:
    step, found = 1e-5, numpy.zeros(at.shape)
    for i in numpy.ndindex(at.shape):
        above, below = at.copy(), at.copy()
        above[i] += step
        below[i] -= step
        found[i] = (loss(above) - loss(below)) / (2 * step)
    return found


def test_forward_by_hand() -> None:
    h = numpy.array([[1.0, 3.0], [-2.0, 2.0]])
    y, mean, rstd = norm_oracle.norm_forward(h, 10.0, 5.0, 0.0, True)
    assert mean.value.tolist() == [[2.0], [0.0]]
    assert rstd.value.tolist() == [[1.0], [0.5]]
    assert y.value.tolist() == [[-5.0, 15.0], [-5.0, 15.0]]
    y, _, rstd = norm_oracle.norm_forward(h, 1.0, 0.0, 0.0, False)
    assert rstd.value.ravel() == pytest.approx([5**-0.5, 0.5])
    assert y.value[1].tolist() == [-1.0, 1.0]


@pytest.mark.parametrize("layer", [True, False])
def test_norm_backward_is_the_slope(layer: bool) -> None:
    x, dy, dh = (RANDOM.standard_normal((3, 5)) for _ in range(3))
    gamma, beta = RANDOM.standard_normal((2, 5))

    def loss(x: Any, gamma: Any, beta: Any) -> float:
        y, _, _ = norm_oracle.norm_forward(x, gamma, beta, 0.25, layer)
        return float((y.value * dy).sum())

    _, mean, rstd = norm_oracle.norm_forward(x, gamma, beta, 0.25, layer)
    dx, dgamma, dbeta = norm_oracle.norm_backward(x, dy, mean.value, rstd.value, gamma, dh, layer)
    assert dx.value == pytest.approx(slope(lambda v: loss(v, gamma, beta), x) + dh, abs=1e-7)
    assert dgamma.value == pytest.approx(slope(lambda v: loss(x, v, beta), gamma), abs=1e-7)
    assert dbeta.value == pytest.approx(slope(lambda v: loss(x, gamma, v), beta), abs=1e-7)


def test_softmax_by_hand() -> None:
    x = numpy.log([[1.0, 3.0, 4.0]] * 3)
    seen = norm_oracle.allowed(3, 3, 3, True)
    assert seen.tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert not norm_oracle.allowed(2, 1, 3, True).any()
    masked = numpy.array([[True, True, True], [False, True, False], [False, False, False]])
    y = norm_oracle.softmax_forward(x, 1.0, masked, numpy.ones((3, 3), bool)).value
    assert y == pytest.approx(numpy.array([[0, 0, 0], [0.2, 0, 0.8], [0.125, 0.375, 0.5]]))
    y = norm_oracle.softmax_forward(x, 1.0, ~seen & False, seen).value
    assert y == pytest.approx(numpy.array([[1, 0, 0], [0.25, 0.75, 0], [0.125, 0.375, 0.5]]))


def test_softmax_backward_is_the_slope() -> None:
    x, dy = RANDOM.standard_normal((2, 4, 3))
    seen = norm_oracle.allowed(4, 3, 4, True)

    def forward(x: Any) -> Any:
        return norm_oracle.softmax_forward(x, 0.5, ~seen & False, seen).value

    dx = norm_oracle.softmax_backward(forward(x), dy, 0.5, seen).value
    assert dx == pytest.approx(slope(lambda v: float((forward(v) * dy).sum()), x), abs=1e-7)
