# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The reference against numerical derivatives; its units against float32 that flushes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.emulation.harness import dropout
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, Case
from tests.emulation.harness.reference import (
    Array,
    Expected,
    Inputs,
    draw,
    from_storage,
    reference,
    to_storage,
)
from tests.emulation.verify.verdict import GATES


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


def test_one_probability_too_many_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask of dropout that is wrong in one place: every output is outside its gate."""
    case = Case("", ((40, 48),), heads_q=1, p_drop=0.25)
    inputs = draw(case, "fp16", (32, 32), seed=2, backward=True)
    right = reference(case, "fp16", inputs)
    numbers = dropout.random_bytes

    def one_other(rows: int, columns: int, *arguments: int) -> Array:
        out = numbers(rows, columns, *arguments).copy()
        out[17, 33] = 0 if out[17, 33] > 191 else 255  # kept, if it was dropped, and vice versa
        return out

    monkeypatch.setattr(dropout, "random_bytes", one_other)
    wrong = reference(case, "fp16", inputs, stored_o=to_storage(right["o"].value, "fp16"))
    for name in ("o", "dq_acc", "dk", "dv"):
        error = right[name].error(wrong[name].value)
        assert not GATES[name].allows(error.rms, error.largest), (name, error)


# Numbers about 2**-126, which bf16 has and kernels flush in float32.

_LENGTH, _SIZE = 64, 64
_FADING = Case("", ((1, _LENGTH),), heads_q=1)


def _fading() -> Inputs:
    """One query, whose probabilities fall to below 2**-126; v and dout are such that each
    probability is an element of o, and of dk and dv by itself."""
    exponents = np.concatenate([[0.0], np.linspace(75.0, 89.0, _LENGTH - 1)])
    q, k = np.zeros((1, 1, _SIZE)), np.zeros((_LENGTH, 1, _SIZE))
    q[..., :2] = 8.0, 3.0
    k[:, 0, 0] = -exponents
    v = np.eye(_LENGTH, _SIZE)[:, None]
    dout = np.full((1, 1, _SIZE), 1.5)
    dout[..., 0] = 0.0
    stored = (to_storage(x, "bf16") for x in (q, k, v, dout))
    return Inputs(*stored, scale=np.float32(_SIZE**-0.5))


def _flushed(x: Array) -> Array:
    """float32, denormal numbers flushed."""
    x = x.astype(np.float32)
    return np.where(np.abs(x) < 2.0**-126, np.float32(0), x)


def _as_a_kernel_does(inputs: Inputs) -> dict[str, Array]:
    """The outputs for `_fading`, from float32 that flushes, with probabilities and dS in bf16."""

    def rounded(x: Array) -> Array:
        return from_storage(to_storage(x, "bf16"), "bf16")

    q, k, v, dout = (
        from_storage(x, "bf16")[:, 0] for x in (inputs.q, inputs.k, inputs.v, inputs.dout)
    )
    scale = float(inputs.scale)
    p = np.exp(q @ k.T * scale)
    p = _flushed(p / p.sum())
    o = _flushed(rounded(p) @ v)
    delta = (dout * rounded(o)).sum()
    ds = _flushed(p * (dout @ v.T - delta))
    grown = {"o": o, "dv": _flushed(rounded(p).T @ dout)}
    grown["dk"] = _flushed(_flushed(rounded(ds).T @ q) * np.float32(scale))
    return {name: rounded(x)[:, None] for name, x in grown.items()}


def test_denormal_numbers_may_be_flushed() -> None:
    inputs = _fading()
    expected, actual = reference(_FADING, "bf16", inputs), _as_a_kernel_does(inputs)
    for name, value in actual.items():
        error = expected[name].error(value)
        assert GATES[name].allows(error.rms, error.largest), (name, error)
        # The test is of such numbers: relative to them the error is all there is.
        assert ((value == 0) & (np.abs(expected[name].value) > 2.0**-134)).any(), name


@pytest.mark.parametrize("factor", [0.0, 2.0, -1.0])
@pytest.mark.parametrize("name", ["o", "dk", "dv"])
def test_other_errors_of_that_size_are_noticed(name: str, factor: float) -> None:
    """One number of 1e-36 is wrong: a hundred times the smallest normal one, 2**-126."""
    inputs = _fading()
    expected, actual = reference(_FADING, "bf16", inputs), _as_a_kernel_does(inputs)[name]
    assert expected[name].error(actual).largest < GATES[name].largest
    at = np.unravel_index(np.abs(np.abs(expected[name].value) - 1e-36).argmin(), actual.shape)
    assert 5e-37 < abs(expected[name].value[at]) < 2e-36
    actual[at] *= factor
    assert expected[name].error(actual).largest > GATES[name].largest
