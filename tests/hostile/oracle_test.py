# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The oracle is right itself: by hand, and that the least mistake is seen."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

from tests.hostile import oracle
from tests.hostile.memory import LAYOUTS, Guarded


def column(*numbers: float) -> Any:
    return numpy.array(numbers, numpy.float32)[:, None]


def test_forward_by_hand() -> None:
    # Scores of log 1 and log 3 are probabilities of 1/4 and 3/4.
    q, k, v = column(1.0), column(0.0, math.log(3)), column(4.0, 8.0)
    out, lse = oracle.forward(q, k, v, 1.0, oracle.Mask())
    assert out.value == pytest.approx(numpy.array([[7.0]]))
    assert lse.value == pytest.approx([math.log(4)])


@pytest.mark.parametrize("cap", [0.0, 0.7])
def test_backward_is_the_slope_of_forward(cap: float) -> None:
    numbers = numpy.random.default_rng(1)
    q, k, v, dout = (numbers.standard_normal((n, 3)) for n in (4, 5, 5, 4))
    bias, kept = numbers.standard_normal((4, 5)), 1.5 * (numbers.random((4, 5)) < 0.7)
    mask = oracle.Mask(2, 1)

    def forward(q: Any, k: Any, v: Any, bias: Any) -> Any:
        return oracle.forward(q, k, v, 0.5, mask, oracle.More(cap, bias, kept))

    def loss(*of: Any) -> float:
        return float((forward(*of)[0].value * dout).sum())

    out, lse = forward(q, k, v, bias)
    more = oracle.More(cap, bias, kept)
    gradients = oracle.backward(dout, q, k, v, out.value, lse.value, 0.5, mask, more)
    step = 1e-6
    for of, gradient in enumerate(gradients):
        for at in numpy.ndindex(gradient.value.shape):
            moved = [[x.copy() for x in (q, k, v, bias)] for _ in range(2)]
            moved[0][of][at] += step
            moved[1][of][at] -= step
            slope = (loss(*moved[0]) - loss(*moved[1])) / (2 * step)
            assert gradient.value[at] == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize(
    ("mask", "seen"),
    [
        (oracle.Mask(), ["111", "111"]),
        (oracle.Mask(-1, 0), ["110", "111"]),
        (oracle.Mask(0, 0), ["010", "001"]),
        (oracle.Mask(-1, 0, bottom_right=False), ["100", "110"]),
        (oracle.Mask(1, 0, bottom_right=False), ["100", "110"]),
    ],
)
def test_masks(mask: oracle.Mask, seen: list[str]) -> None:
    rows = ["".join("1" if s else "0" for s in row) for row in mask.seen(2, 3)]
    assert rows == seen


def test_a_row_without_keys() -> None:
    out, lse = oracle.forward(column(1.0, 1.0), column(1.0), column(5.0), 1.0, oracle.Mask(-1, 0))
    assert out.value.tolist() == [[0.0], [5.0]]
    assert lse.value[0] == -math.inf


@pytest.mark.parametrize(("dtype", "bits"), [("float16", 10), ("float32", 23)])
def test_an_error_beyond_the_gate_is_seen(dtype: str, bits: int) -> None:
    exact = oracle.Exact(numpy.array([1.0, 0.0, 2.0**-20]), numpy.ones(3) * 1e-9)
    right = exact.value.astype(dtype)
    oracle.require_equal("x", right, exact, dtype)
    wrong = right.copy()
    wrong[0] += (oracle.GATES[dtype] + 1) * 2.0**-bits
    with pytest.raises(AssertionError, match=r"x\[0\] is .* ulp of float"):
        oracle.require_equal("x", wrong, exact, dtype)
    for odd in (math.nan, math.inf):
        wrong[0] = odd
        with pytest.raises(AssertionError, match="inf ulp"):
            oracle.require_equal("x", wrong, exact, dtype)


def test_what_overflows_is_infinite() -> None:
    exact = oracle.Exact(numpy.array([65530.0, -1e9]), numpy.ones(2))
    oracle.require_equal("x", numpy.array([numpy.inf, -numpy.inf], numpy.float16), exact, "float16")
    with pytest.raises(AssertionError):
        oracle.require_equal(
            "x", numpy.array([-numpy.inf, numpy.inf], numpy.float16), exact, "float16"
        )


@pytest.mark.parametrize("layout", range(0, LAYOUTS, 37))
def test_a_byte_beside_an_array_is_seen(layout: int) -> None:
    guarded = Guarded((2, 3, 2, 5), "float16", layout).draw(3, 1.0)
    everything, bits = guarded.view.base, guarded.view.view(numpy.uint16)
    bits[...] = 0
    zeros = everything.copy()
    bits[...] = 0xFFFF
    guarded.require_only_elements_written("x")
    with pytest.raises(AssertionError, match="x was written to"):
        guarded.require_untouched("x")
    beside = numpy.flatnonzero(everything == zeros)
    for at in (beside[0], beside[len(beside) // 2], beside[-1]):
        everything[at] ^= 1
        with pytest.raises(AssertionError, match="guard bytes"):
            guarded.require_only_elements_written("x")  # and puts the byte back
