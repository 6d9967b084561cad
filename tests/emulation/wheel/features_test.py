# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Biases, ALiBi, dropout, soft caps, deterministic backward passes, two head sizes and sequences
left out: the wheel of the variant set `features` on device arrays, against float64."""

from __future__ import annotations

import dataclasses
from typing import Any

import aiter_attn
import numpy as np
import pytest

from tests.emulation.harness import reference
from tests.emulation.verify.verdict import GATES
from tests.emulation.wheel import wheel_contents
from tests.emulation.wheel.featured import HEAD_SIZE, WINDOW, Featured, run
from tests.emulation.wheel.problems import CAUSAL, NO_WINDOW, Shape, backward, check_with_sink
from tests.emulator.hip.hip import Hip

SINK = np.array([-2.0, 5.0, -np.inf, 0.5], np.float32)
BATCH, GROUP = ((77, 130),) * 2, ((19, 40), (5, 0), (64, 33), (1, 1))

each_arch = pytest.mark.parametrize("arch", wheel_contents.ARCHS)


@each_arch
@pytest.mark.parametrize("window", [CAUSAL, WINDOW], ids=str)
@pytest.mark.parametrize(
    "features", [{"bias": "alibi"}, {"p_drop": 0.3}], ids=lambda x: "-".join(map(str, x.values()))
)
def test_forward_and_backward(
    hip: Hip, arch: str, features: dict[str, Any], window: tuple[int, int]
) -> None:
    problem = Featured(hip, Shape(BATCH, (4, 2), window), arch, **features)
    problem.check(**run(problem))


@each_arch
@pytest.mark.parametrize("window", [CAUSAL, WINDOW], ids=str)
def test_the_weights_that_stay(hip: Hip, arch: str, window: tuple[int, int]) -> None:
    problem = Featured(hip, Shape(BATCH, (4, 2), window), arch, p_drop=0.3)
    q, k, v, _ = problem.arrays()
    hip.synchronize(problem.stream)
    del problem.options["stream"]  # the function has the current one
    out, lse, kept = aiter_attn.flash_attn_func(q, k, v, **problem.options, return_attn_probs=True)
    problem.check(o=out, lse=lse)
    assert kept.dtype == "uint8"
    want = reference.kept_of(problem.case).value
    np.testing.assert_array_equal(kept.read().swapaxes(0, 1).reshape(want.shape), want)


@each_arch
def test_a_bias_and_its_gradient(hip: Hip, arch: str) -> None:
    problem = Featured(hip, Shape(BATCH, (4, 2), WINDOW), arch, bias="elementwise")
    results = run(problem, bias_grad=True)
    dbias = results.pop("dbias").read().swapaxes(0, 1)
    problem.check(**results)
    stored = problem.read("o", results["o"])
    bits = np.ascontiguousarray(stored).view(np.uint16)
    expected = reference.reference(problem.case, "fp16", problem.inputs, bits)["dbias"]
    actual = dbias.reshape(expected.value.shape).astype(np.float64)
    error = expected.error(actual)
    assert GATES["o"].allows(error.rms, error.largest), f"dbias: {error}"


@each_arch
def test_one_bias_serves_all(hip: Hip, arch: str) -> None:
    problem = Featured(hip, Shape(BATCH, (4, 2), CAUSAL), arch)
    q, k, v, _ = problem.arrays()
    bias = np.random.default_rng(0).standard_normal((1, 1, 77, 130)).astype(np.float16)
    results = []
    for given in (bias, np.broadcast_to(bias, (2, 4, 77, 130)).copy()):
        array = problem.hip.array(given, problem.stream, problem.device)
        out, lse = aiter_attn.mha_fwd(q, k, v, **problem.options, bias=array)
        problem.hip.synchronize(problem.stream)
        results.append((out.read(), lse.read()))
    for one, all_of_them in zip(*results, strict=True):
        np.testing.assert_array_equal(one, all_of_them)


# Shapes of the bias; 130 keys are no multiple of the number that a work-item sums at a time.
@each_arch
@pytest.mark.parametrize(
    ("lengths", "heads", "sizes"),
    [
        ((77, 130), (4, 2), (1, 4, 1)),
        ((64, 128), (2, 2), (1, 1, 64)),
        ((5, 128), (2, 1), (2, 1, 5)),
    ],
    ids=str,
)
def test_the_gradient_of_a_bias_that_repeats(
    hip: Hip,
    arch: str,
    lengths: tuple[int, int],
    heads: tuple[int, int],
    sizes: tuple[int, int, int],
) -> None:
    problem = Featured(hip, Shape((lengths,) * 2, heads, WINDOW), arch)
    queries, keys = lengths
    bias = np.random.default_rng(1).standard_normal((*sizes, keys)).astype(np.float16)
    every = np.broadcast_to(bias, (2, heads[0], queries, keys)).swapaxes(0, 1)
    problem.case = dataclasses.replace(problem.case, bias="elementwise")
    problem.inputs.bias = every.reshape(heads[0], -1, keys).view(np.uint16)
    problem.options["bias"] = problem.hip.array(bias, problem.stream, problem.device)
    results = run(problem, bias_grad=True)
    dbias = results.pop("dbias").read()
    assert dbias.shape == bias.shape
    problem.check(**results)
    stored = problem.read("o", results["o"])
    bits = np.ascontiguousarray(stored).view(np.uint16)
    expected = reference.reference(problem.case, "fp16", problem.inputs, bits)["dbias"]
    value, unit = (
        x.reshape(heads[0], 2, queries, keys).swapaxes(0, 1)
        for x in (expected.value, expected.unit)
    )
    axes = tuple(axis for axis, size in enumerate(sizes) if size == 1)
    value = value.sum(axes, keepdims=True)
    unit = np.sqrt((unit**2).sum(axes, keepdims=True)) + reference.UNIT["fp16"] * abs(value)
    error = reference.Expected(value, unit).error(dbias.astype(np.float64))
    print(sizes, error)
    assert GATES["o"].allows(error.rms, error.largest), f"dbias: {error}"


@each_arch
@pytest.mark.parametrize("window", [CAUSAL, WINDOW], ids=str)
@pytest.mark.parametrize("features", [{"bias": "elementwise"}, {"p_drop": 0.3}], ids=str)
def test_a_sink(hip: Hip, arch: str, features: dict[str, Any], window: tuple[int, int]) -> None:
    """Its gradient is taken of row sums that lack the factor of dropout."""
    problem = Featured(hip, Shape(BATCH, (4, 2), window), arch, **features)
    problem.inputs.sink = SINK
    problem.options["sink"] = hip.array(SINK, problem.stream, problem.device)
    q, k, v, dout = problem.arrays()
    out, lse = aiter_attn.mha_fwd(q, k, v, **problem.options)
    gradients, _workspace = backward(
        problem, aiter_attn.mha_bwd, dout, q, k, v, out, lse,
        **problem.options, bias_grad="bias" in features,
    )  # fmt: skip
    problem.hip.synchronize(problem.stream)
    check_with_sink(problem, out, lse, [*gradients[:3], gradients[-1]])


@each_arch
@pytest.mark.parametrize("window", [CAUSAL, WINDOW], ids=str)
def test_heads_of_192_and_128(hip: Hip, arch: str, window: tuple[int, int]) -> None:
    problem = Featured(hip, Shape(BATCH, (4, 2), window), arch, sizes=(192, 128))
    q, k, v, _ = problem.arrays()
    out, lse = aiter_attn.mha_fwd(q, k, v, **problem.options)
    problem.hip.synchronize(problem.stream)
    problem.check(o=out, lse=lse)


@each_arch
def test_a_soft_cap(hip: Hip, arch: str) -> None:
    problem = Featured(hip, Shape(BATCH, (4, 2), CAUSAL), arch, soft_cap=2.0)
    q, k, v, dout = problem.arrays()
    out, lse = aiter_attn.mha_fwd(q, k, v, **problem.options)
    problem.hip.synchronize(problem.stream)
    problem.check(o=out, lse=lse)
    with pytest.raises(aiter_attn.UnsupportedError, match="no backward kernel with a cap"):
        aiter_attn.mha_bwd(dout, q, k, v, out, lse, **problem.options)


@each_arch
@pytest.mark.parametrize("sink", [None, SINK], ids=["", "sink"])
def test_a_deterministic_backward_pass(hip: Hip, arch: str, sink: Any) -> None:
    problem = Featured(hip, Shape(BATCH, (4, 2), CAUSAL), arch)
    q, k, v, dout = problem.arrays()
    problem.inputs.sink = sink
    if sink is not None:
        problem.options["sink"] = hip.array(sink, problem.stream, problem.device)
    # The set has no plain forward kernel: the host's arrays are computed by the reference.
    on_host = [np.ascontiguousarray(x.read()) for x in (q, k, v)]
    out, lse = (
        problem.hip.array(x, problem.stream, problem.device)
        for x in aiter_attn.mha_fwd(*on_host, causal=True, sink=sink)
    )
    results = []
    for _ in range(2):
        gradients, _workspace = backward(
            problem, aiter_attn.mha_bwd, dout, q, k, v, out, lse,
            **problem.options, deterministic=True,
        )  # fmt: skip
        problem.hip.synchronize(problem.stream)
        results.append([gradient.read() for gradient in gradients])
    if sink is None:
        names = ("dq", "dk", "dv")
        problem.check(o=out, lse=lse, **dict(zip(names, gradients, strict=True)))
    else:
        check_with_sink(problem, out, lse, gradients)
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)


@each_arch
def test_a_deterministic_backward_pass_of_a_sequence_without_keys(hip: Hip, arch: str) -> None:
    """All keys fit one tile, so that there is one sum of dq, but for defect N."""
    shape = Shape(((19, 0), (64, 33), (1, 1)), (4, 2), CAUSAL, group=True)
    problem = Featured(hip, shape, arch)
    q, k, v, dout = problem.arrays()
    _, bwd, more = problem.mode()
    starts = np.cumsum([(0, 0), *shape.lengths], axis=0, dtype=np.int32)
    starts_q, starts_k = np.ascontiguousarray(starts.T)
    on_host = [np.ascontiguousarray(x.read()) for x in (q, k, v)]
    out, lse = (
        problem.hip.array(x, problem.stream, problem.device)
        for x in aiter_attn.mha_varlen_fwd(*on_host, starts_q, starts_k, 64, 33, causal=True)
    )
    gradients, _workspace = backward(
        problem, bwd, dout, q, k, v, out, lse, *more, **problem.options, deterministic=True
    )
    problem.hip.synchronize(problem.stream)
    assert not gradients[0].read()[:19].any()
    problem.check(o=out, lse=lse, **dict(zip(("dq", "dk", "dv"), gradients, strict=True)))


@each_arch
def test_short_sequences_are_left_out(hip: Hip, arch: str) -> None:
    problem = Featured(hip, Shape(GROUP, (4, 2), CAUSAL, group=True), arch, skipped_seqlen_q=5)
    q, k, v, _ = problem.arrays()
    fwd, _, more = problem.mode()
    rows = problem.case.total_q
    place = (problem.stream, problem.device)
    out = hip.array(np.full((rows, 4, HEAD_SIZE), 7, np.float16), *place)
    lse = hip.array(np.full((4, rows), 7, np.float32), *place)
    fwd(q, k, v, *more, **problem.options, min_seqlen_q=5, out=out, lse=lse)
    problem.hip.synchronize(problem.stream)
    problem.check(o=out, lse=lse)
    skipped = np.isnan(reference.reference(problem.case, "fp16", problem.inputs)["lse"].value)
    assert skipped.sum() == 4 * (5 + 1)
    assert (lse.read()[skipped] == 7).all()
    assert (out.read()[skipped[0]] == 7).all()


@each_arch
def test_alibi_without_a_mask(hip: Hip, arch: str) -> None:
    """Slopes count from the bottom right."""
    problem = Featured(hip, Shape(GROUP, (4, 2), NO_WINDOW, group=True), arch, bias="alibi")
    problem.check(**run(problem))
