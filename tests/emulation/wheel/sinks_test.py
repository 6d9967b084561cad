# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Sinks of attention: the wheel on device arrays, forward and backward, against float64."""

from __future__ import annotations

import re
from typing import Any

import aiter_attn
import numpy as np
import pytest

from tests.emulation.harness import reference
from tests.emulation.wheel import wheel_contents
from tests.emulation.wheel.problems import (
    CAUSAL,
    NO_WINDOW,
    SHORT,
    Problem,
    Shape,
    backward,
    check_with_sink,
    mask,
)
from tests.emulator.hip import emulated_hip
from tests.emulator.hip.hip import Hip

KINDS = [("float16", 64), ("bfloat16", 128)]
SHAPES = [
    Shape(((33, 47),) * 2, heads=(2, 1)),
    Shape(((77, 40),), heads=(3, 1), window=CAUSAL),  # rows that see no key
    Shape(((19, 40), (5, 0), (64, 33), (1, 1)), heads=(4, 2), group=True),
    Shape(((40, 40), (0, 7), (17, 50), (0, 0), (3, 0)), window=(9, 4), group=True),
]
# Of little weight, of nearly all of it, none, and the usual.
SINK = np.array([-2.0, 5.0, -np.inf, 0.5], np.float32)

each_arch = pytest.mark.parametrize("arch", wheel_contents.ARCHS)


def cases() -> list[Any]:
    built = [
        (shape, dtype, size)
        for shape in SHAPES
        for dtype, size in KINDS
        if wheel_contents.has(
            "group" if shape.group else "batch", shape.window != NO_WINDOW, SHORT[dtype], size
        )
    ]
    return [pytest.param(*case, id="-".join(map(str, case))) for case in built]


@each_arch
@pytest.mark.parametrize(("shape", "dtype", "head_size"), cases())
def test_forward_and_backward(
    hip: Hip, arch: str, shape: Shape, dtype: str, head_size: int, runtime: emulated_hip.Runtime
) -> None:
    problem = Problem(hip, shape, dtype, head_size, hip.device_of(arch))
    inputs = problem.inputs
    inputs.sink = SINK[: shape.heads[0]]
    q, k, v, dout = map(problem.array, (inputs.q, inputs.k, inputs.v, inputs.dout))
    fwd, bwd, more = problem.mode()
    sink = hip.array(inputs.sink, problem.stream, problem.device)
    options = {"stream": problem.stream, "sink": sink, **mask(shape.window)}
    out, lse = fwd(q, k, v, *more, **options)
    results = []
    for _ in range(2):
        gradients, _workspace = backward(problem, bwd, dout, q, k, v, out, lse, *more, **options)
        hip.synchronize(problem.stream)
        results.append(gradients[3].read())
    np.testing.assert_array_equal(*results)
    check_with_sink(problem, out, lse, gradients)
    launched = [x.symbol for x in runtime.launches if x.symbol.startswith("attn_sink")]
    assert launched == [f"attn_sink_{SHORT[dtype]}", *["attn_sink_grad"] * 2]
    # Rows without a key have it as their lse.
    no_key = np.isneginf(
        reference.reference(
            problem.case,
            SHORT[dtype],
            reference.Inputs(inputs.q, inputs.k, inputs.v, inputs.dout, inputs.scale),
        )["lse"].value
    )
    wanted = np.broadcast_to(inputs.sink[:, None], no_key.shape)[no_key]
    np.testing.assert_array_equal(problem.read("lse", lse)[no_key], wanted)


@each_arch
def test_without_any_key(hip: Hip, arch: str) -> None:
    if not wheel_contents.has("batch", True):
        pytest.fail("the wheel has no kernel for batch mode with a mask")
    problem = Problem(hip, Shape(((5, 0),) * 2, window=CAUSAL), "float16", 64, hip.device_of(arch))
    inputs = problem.inputs
    q, k, v, dout = map(problem.array, (inputs.q, inputs.k, inputs.v, inputs.dout))
    sink = hip.array(SINK[:2], problem.stream, problem.device)
    options = {"stream": problem.stream, "sink": sink, "causal": True}
    out, lse = aiter_attn.mha_fwd(q, k, v, **options)
    gradients = aiter_attn.mha_bwd(dout, q, k, v, out, lse, **options)
    hip.synchronize(problem.stream)
    assert not out.read().any()
    np.testing.assert_array_equal(lse.read(), np.broadcast_to(SINK[:2, None], (2, 2, 5)))
    assert not gradients[3].read().any()


@each_arch
def test_refused_by_name(hip: Hip, arch: str) -> None:
    problem = Problem(hip, Shape(((9, 9),), window=CAUSAL), "float16", 64, hip.device_of(arch))
    q, k, v = map(problem.array, (problem.inputs.q, problem.inputs.k, problem.inputs.v))
    with pytest.raises(ValueError, match=re.escape("sink: on CPU")):
        aiter_attn.mha_fwd(q, k, v, causal=True, stream=problem.stream, sink=SINK[:2])
    halves = hip.array(SINK[:2].astype(np.float16), problem.stream, problem.device)
    with pytest.raises(TypeError, match=r"^sink: dtype float16; allowed: float32"):
        aiter_attn.mha_fwd(q, k, v, causal=True, stream=problem.stream, sink=halves)
