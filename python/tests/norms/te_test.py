# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""TransformerEngine's cases of its norm operators, on the CPU."""

from __future__ import annotations

import collections
import os

import aiter_attn
import numpy
import pytest

from python.tests.norms.te_cases import (
    EPSILON,
    Case,
    cases,
    expected_backward,
    expected_forward,
    inputs,
    mistakes,
)

_MOST = 300_000  # elements of a case of the default suite
_LONG = os.environ["TE_CASES"] == "large"
CHOSEN = [case for case in cases() if (case.rows * case.hidden > _MOST) == _LONG]


def test_there_are_192_of_each_norm() -> None:
    counted = collections.Counter(case.norm for case in cases())
    assert counted == {"layer": 192, "rms": 192}
    assert len(set(cases())) == 2 * 192


@pytest.mark.parametrize("case", CHOSEN, ids=str)
def test_case(case: Case) -> None:
    given = inputs(case)
    options = {"epsilon": EPSILON, "zero_centred": case.zero_centred, "y_dtype": case.y}
    results = {}
    if case.y.startswith("float8"):
        results["amax"] = numpy.zeros(1, numpy.float32)
        options |= {"scale": given.scale, "amax": results["amax"]}
    if case.layer:
        forward = aiter_attn.layer_norm_fwd(given.x, given.gamma, given.beta, **options)
        results["y"], results["mean"], results["rstd"], _ = forward
        statistics = results["mean"], results["rstd"]
        backward = aiter_attn.layer_norm_bwd
    else:
        forward = aiter_attn.rms_norm_fwd(given.x, given.gamma, **options)
        results["y"], results["rstd"], _ = forward
        statistics = (results["rstd"],)
        backward = aiter_attn.rms_norm_bwd
    assert results["y"].dtype.name == case.y
    gradients = backward(
        given.dy, given.x, given.gamma, *statistics, zero_centred=case.zero_centred
    )
    results |= dict(zip(("dx", "dgamma", "dbeta"), gradients, strict=False))
    assert not mistakes(case, expected_forward(case, given, results), results)
    assert not mistakes(case, expected_backward(case, given, results), results)


def test_a_wrong_result_is_found() -> None:
    case = next(case for case in cases() if str(case) == "rms-bfloat16-bfloat16-64x512")
    given = inputs(case)
    y, rstd, _ = aiter_attn.rms_norm_fwd(given.x, given.gamma, epsilon=EPSILON)
    results = {"y": y, "rstd": rstd}
    assert not mistakes(case, expected_forward(case, given, results), results)
    y[3, 5] *= 1.05
    (mistake,) = mistakes(case, expected_forward(case, given, results), results)
    assert mistake.startswith("y: 1 wrong, first at (")
