# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""TransformerEngine's cases of its norm operators on an emulated GPU, few rows of each."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import aiter_attn
import numpy
import pytest
from aiter_attn._cli.hardware import memory

from python.tests.norms.te_cases import (
    EPSILON,
    Case,
    cases,
    expected_backward,
    expected_forward,
    inputs,
    mistakes,
    numpy_dtype,
)
from tests.emulation.wheel.compiler import load_compiler
from tests.emulator.hip.emulated_hip import Runtime

ROWS = 3


def chosen() -> list[Case]:
    """Each norm, type and way of gamma once, and by turns each size."""
    found = []
    kinds = itertools.groupby(
        sorted(cases(), key=lambda c: (c.norm, c.x, c.y, c.zero_centred)),
        lambda c: (c.norm, c.x, c.y, c.zero_centred),
    )
    for number, (_, sizes) in enumerate(kinds):
        of_kind = list(sizes)
        found.append(dataclasses.replace(of_kind[number % len(of_kind)], rows=ROWS))
    return found


def test_each_size_is_among_them() -> None:
    sizes = {(case.norm, case.hidden) for case in cases()}
    assert {(case.norm, case.hidden) for case in chosen()} == sizes
    assert len(chosen()) == 2 * 3 * 4 * 2


@pytest.mark.parametrize("case", chosen(), ids=str)
def test_case(
    runtime: Runtime, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_compiler(tmp_path)
    monkeypatch.setattr(memory._Adapter, "seen_as", lambda self, name, array, dtype: array)
    gpu, given = memory.Memory(0), inputs(case)
    on_gpu = {f.name: gpu.array(getattr(given, f.name)) for f in dataclasses.fields(given)}
    x, gamma, beta = (on_gpu[name] for name in ("x", "gamma", "beta"))
    made: dict[str, Any] = {}
    options: dict[str, Any] = {"y_dtype": case.y}
    if case.y.startswith("float8"):
        made["amax"] = gpu.array(numpy.zeros(1, numpy.float32))
        options |= {"scale": on_gpu["scale"], "amax": made["amax"]}
    options |= {"epsilon": EPSILON, "zero_centred": case.zero_centred}
    if case.layer:
        forward = aiter_attn.layer_norm_fwd(x, gamma, beta, **options)
        made["y"], made["mean"], made["rstd"], _ = forward
        statistics: tuple[Any, ...] = (made["mean"], made["rstd"])
        backward: Any = aiter_attn.layer_norm_bwd
    else:
        made["y"], made["rstd"], _ = aiter_attn.rms_norm_fwd(x, gamma, **options)
        statistics = (made["rstd"],)
        backward = aiter_attn.rms_norm_bwd
    gradients = backward(on_gpu["dy"], x, gamma, *statistics, zero_centred=case.zero_centred)
    made |= dict(zip(("dx", "dgamma", "dbeta"), gradients, strict=False))
    gpu.wait()
    runtime.raise_failures()
    results = {name: array.read() for name, array in made.items()}
    if case.y.startswith("float8"):
        results["y"] = results["y"].view(numpy_dtype(case.y))
    assert not mistakes(case, expected_forward(case, given, results), results)
    assert not mistakes(case, expected_backward(case, given, results), results)
