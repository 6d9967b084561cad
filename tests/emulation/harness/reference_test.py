# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The reference against numerical derivatives."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, Case
from tests.emulation.harness.reference import Expected, Inputs, draw, from_storage, reference


def _moved(inputs: Inputs, name: str, at: tuple[int, int, int], step: int) -> Inputs:
    """One element moved by `step` units in the last place."""
    array = getattr(inputs, name).copy()
    array.view(np.int16)[at] += step
    return dataclasses.replace(inputs, **{name: array})


@pytest.mark.parametrize(
    ("name", "gradient", "features"),
    [
        ("q", "dq", {}),
        ("k", "dk", {}),
        ("v", "dv", {}),
        ("q", "dq", {"bias": "alibi", "p_drop": 0.3}),
        ("k", "dk", {"bias": "elementwise", "p_drop": 0.3}),
        ("v", "dv", {"bias": "elementwise", "p_drop": 0.3}),
        ("bias", "dbias", {"bias": "elementwise", "p_drop": 0.3}),
    ],
)
def test_gradients_are_derivatives(name: str, gradient: str, features: dict) -> None:
    window = {"mask": MASK_BOTTOM_RIGHT, "window": (5, 0)}
    case = Case("", ((9, 12),), heads_q=2, heads_k=2, **window, **features)
    inputs = draw(case, "fp16", (16, 24), seed=5, backward=True)
    dout = from_storage(inputs.dout, "fp16")
    expected = reference(case, "fp16", inputs)[gradient].value

    def loss(changed: Inputs) -> float:
        return float((reference(case, "fp16", changed)["o"].value * dout).sum())

    for at in ((0, 0, 3), (1, 1, 7), (1, 0, 6)):
        low, high = _moved(inputs, name, at, -8), _moved(inputs, name, at, 8)
        values = [from_storage(getattr(x, name), "fp16")[at] for x in (low, high)]
        slope = (loss(high) - loss(low)) / (values[1] - values[0])
        # The reference takes o as it is stored, which moves dS a little.
        assert slope == pytest.approx(expected[at], rel=0.02, abs=0.01)


def test_rows_without_a_key() -> None:
    case = Case("", ((3, 0), (4, 2)), mask=MASK_BOTTOM_RIGHT, window=(-1, 0))
    out = reference(case, "bf16", draw(case, "bf16", (8, 8), seed=1, backward=True))
    # The second sequence's first two queries see no key either.
    assert np.isneginf(out["lse"].value[:, :5]).all() and np.isfinite(out["lse"].value[:, 5:]).all()
    for name in ("o", "dq"):
        assert not out[name].value[:5].any() and out[name].value[5:].any()


def test_errors() -> None:
    expected = Expected(np.array([1.0, -np.inf, 2.0]), np.array([0.1, 0.1, 0.1]))
    right = expected.error(np.array([1.1, -np.inf, 2.0]))
    assert right.largest == pytest.approx(1.0) and right.where == (0,)
    for wrong in ([np.nan, -np.inf, 2.0], [1.0, 0.0, 2.0], [1.0, np.inf, 2.0]):
        assert expected.error(np.array(wrong)).largest == np.inf
    untouched = Expected(np.array([np.nan, 1.0]), np.array([0.1, 0.1]))
    assert untouched.error(np.array([np.nan, 1.05])).rms == pytest.approx(0.5)
