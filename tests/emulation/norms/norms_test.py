# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The norm and softmax kernels, executed: against float64, with all checks on."""

from __future__ import annotations

import os
import zlib

import numpy as np
import pytest
from gfxemu import EmulationError

from tests.emulation.norms import reference
from tests.emulation.norms.reference import SATURATING, TYPES, Array, Expected
from tests.emulation.norms.shapes import (
    Run,
    Shape,
    arguments_of,
    barriers,
    set_pointer,
    shapes,
)

SCHEDULES = os.environ["NORM_SCHEDULES"].split()
_EPSILON, _SOFTMAX_SCALE, _OUTPUT_SCALE = 1e-5, 0.37, 1.7
_MASK_REPEAT = 2
ROWS, BLOCKS = 1, 2  # NORM_SCALES


def _of(kernel: str) -> list[Shape]:
    return [shape for shape in shapes() if kernel in shape.kernels]


each_schedule = pytest.mark.parametrize("schedule", SCHEDULES)


def _random(shape: Shape) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(shape.name.encode()))


def _hard_rows(x: Array, dtype: str) -> None:
    """Puts rows into x, from its second on, that break careless kernels."""
    large = 1e3 if dtype == "fp16" else 1e15
    middle = x.shape[1] // 2
    rows = x[1:]
    rows[0] = 3
    rows[1] = 0
    rows[2] *= large
    rows[3] *= 1e-30
    rows[4, middle] = np.nan
    rows[5, -1] = np.inf
    rows[6, 0] = large
    rows[7] += 100
    rows[8] = 30000.123


def _count(shape: Shape) -> tuple[int, int]:
    """Rows, and the workgroups that share them: each has several turns, the last a short one."""
    rows = max(11, 2 * 2 * shape.rows_in_hand + 1)
    return rows, 2


def _check(name: str, expected: Expected, got: Array, dtype: str) -> None:
    mistake = expected.mistake(got, dtype)
    assert not mistake, f"{name}: {mistake}"


_ELSEWHERE = [s for s in _of("norm_forward") if not s.macros.get("NORM_IN_PLACE")]


@each_schedule
@pytest.mark.parametrize("shape", _ELSEWHERE, ids=str)
def test_norm_forward(shape: Shape, schedule: str) -> None:
    _norm_forward(shape, schedule)


# Kernels of calls in place, and some that hold a row: they serve such calls, too.
_IN_PLACE = [
    shape
    for shape in _of("norm_forward")
    if shape.macros.get("NORM_IN_PLACE")
    or shape.name in ("rms_add_forward_bf16_1001", "rms_add_forward_fp16_512")
]


@each_schedule
@pytest.mark.parametrize("shape", _IN_PLACE, ids=str)
def test_norm_forward_in_place(shape: Shape, schedule: str) -> None:
    _norm_forward(shape, schedule, in_place=True)


def _norm_forward(
    shape: Shape, schedule: str, without: tuple[str, int] | None = None, in_place: bool = False
) -> None:
    random, kernel = _random(shape), "norm_forward"
    xt, wt, yt = (shape.dtype(f"NORM_{m}") for m in "XWY")
    rows, groups = _count(shape)
    x = random.standard_normal((rows, shape.hidden))
    _hard_rows(x, xt)
    x = x.astype(TYPES[xt])
    gamma = random.standard_normal(shape.hidden).astype(TYPES[wt])
    beta = random.standard_normal(shape.hidden).astype(TYPES[wt])
    residual = random.standard_normal(x.shape).astype(TYPES[xt])
    has_beta, adds = shape.macros["NORM_BETA"], shape.macros["NORM_ADD"]
    has_gamma, scales = shape.macros.get("NORM_GAMMA", 1), shape.macros.get("NORM_SCALES", 0)
    scaled = yt in SATURATING and not scales
    y_in_place = in_place and xt == yt
    with Run(shape, schedule, without) as run:
        a = arguments_of(kernel)
        a.rows, a.groups, a.epsilon = rows, groups, _EPSILON
        if y_in_place:
            a.y, a.y_stride, y = run.changed_matrix("x", x)
            set_pointer(a, "x", a.y, a.y_stride)
        else:
            set_pointer(a, "x", *run.matrix("x", x))
            a.y, a.y_stride, y = run.output_matrix(kernel, "y", rows, yt)
        if has_gamma:
            set_pointer(a, "gamma", run.vector("gamma", gamma))
        if has_beta:
            set_pointer(a, "beta", run.vector("beta", beta))
        if shape.layer:
            a.mean, mean = run.output(kernel, "mean", (rows,), "fp32")
        a.rstd, rstd = run.output(kernel, "rstd", (rows,), "fp32")
        if in_place:
            a.sum, a.sum_stride, total = run.changed_matrix("residual", residual)
            set_pointer(a, "residual", a.sum, a.sum_stride)
        elif adds:
            set_pointer(a, "residual", *run.matrix("residual", residual))
            a.sum, a.sum_stride, total = run.output_matrix(kernel, "sum", rows, xt)
        if scales == ROWS:
            a.amax, of_scales = run.output(kernel, "scales", (rows,), "fp32")
        elif scales == BLOCKS:
            blocks = rows, shape.hidden // reference.BLOCK
            a.amax, of_scales = run.output(kernel, "scales", blocks, "e8m0")
        if scaled:
            set_pointer(a, "scale", run.vector("scale", np.float32([_OUTPUT_SCALE])))
            amax = run.place("amax", np.zeros(1, np.float32))
            set_pointer(a, "amax", amax[0])
        weights = gamma.itemsize * (1 + has_beta)
        lds = shape.configuration.weights_bytes(shape.hidden, shape.vector, weights)
        run.launch_rows(kernel, a, groups, lds)
        h = x.astype(np.float64)
        if adds:
            h = h + residual.astype(np.float64)
            _check("sum", Expected(h, 2.0**-23 * np.nan_to_num(np.abs(h), posinf=0)),
                   run.result(total), xt)  # fmt: skip
            h = run.result(total).astype(np.float64)
        m = reference.moments(h, shape.layer, _EPSILON)
        of_mean, of_rstd = reference.statistics(h, m)
        if shape.layer:
            _check("mean", of_mean, mean, "fp32")
        _check("rstd", of_rstd, rstd, "fp32")
        factor = gamma.astype(np.float64) + shape.macros["NORM_ZERO_CENTRED"]
        if not has_gamma:
            factor = np.ones(shape.hidden)
        want = reference.norm_forward(h, m, factor, beta.astype(np.float64) if has_beta else 0.0)
        if scaled:
            largest = np.abs(want.value[np.isfinite(want.value)]).max()
            assert abs(amax[1][0] - largest) <= 1e-4 * largest
            want = Expected(want.value * _OUTPUT_SCALE, want.slack * 2)
        if scales == ROWS:
            assert not reference.mistakes_of_row_scales(want.value, of_scales, yt)
            want = want.divided(of_scales[:, None].astype(np.float64))
        elif scales == BLOCKS:
            assert not reference.mistakes_of_block_scales(want.value, of_scales, yt)
            powers = np.exp2(of_scales.astype(np.float64) - 127)
            want = want.divided(np.repeat(powers, reference.BLOCK, axis=-1))
        _check("y", want, run.result(y), yt)


@each_schedule
@pytest.mark.parametrize("hard", [False, True], ids=["soft", "hard"])
@pytest.mark.parametrize("shape", _of("norm_backward") + _of("norm_backward_long"), ids=str)
def test_norm_backward(shape: Shape, hard: bool, schedule: str) -> None:
    _norm_backward(shape, hard, schedule)


def _norm_backward(
    shape: Shape, hard: bool, schedule: str, without: tuple[str, int] | None = None
) -> None:
    random = _random(shape)
    kernel = "norm_backward_long" if shape.is_split else "norm_backward"
    xt, wt, yt = (shape.dtype(f"NORM_{m}") for m in "XWY")
    rows, groups = _count(shape)
    x = random.standard_normal((rows, shape.hidden)) + 0.5
    if hard:
        _hard_rows(x, xt)
    x = x.astype(TYPES[xt])
    dy = random.standard_normal(x.shape).astype(TYPES[yt])
    dh = random.standard_normal(x.shape).astype(TYPES[xt])
    gamma = random.standard_normal(shape.hidden).astype(TYPES[wt])
    m = reference.moments(x.astype(np.float64), shape.layer, _EPSILON)
    mean, rstd = m.mean.astype(np.float32), m.rstd.astype(np.float32)
    m = reference.Moments(mean.astype(np.float64), rstd.astype(np.float64), m.condition)
    of_slice = 2 if shape.layer else 1
    sums = of_slice if shape.macros.get("NORM_SUMS", 1) else 0
    has_gamma = shape.macros.get("NORM_GAMMA", 1)
    few = not shape.is_split and shape.configuration.few_rows > 0
    parts = 3 if shape.is_split else groups
    with Run(shape, schedule, without) as run:
        a = arguments_of(kernel)
        a.rows = rows
        set_pointer(a, "x", *run.matrix("x", x))
        set_pointer(a, "dy", *run.matrix("dy", dy))
        if shape.macros["NORM_ADD"]:
            set_pointer(a, "dh", *run.matrix("dh", dh))
        a.dx, a.dx_stride, dx = run.output_matrix(kernel, "dx", rows, xt)
        if has_gamma:
            set_pointer(a, "gamma", run.vector("gamma", gamma))
        a.rstd = run.vector("rstd", rstd)
        a.mean = run.vector("mean", mean) if shape.layer else 0
        results = []
        at_parts = []
        for i in range(sums):
            if few:
                at, array = run.output(kernel, f"sum {i}", (shape.hidden,), wt)
                results.append(array)
            else:
                at, _ = run.output(kernel, f"parts {i}", (parts, shape.hidden), "fp32")
            at_parts.append(at)
        at_parts = at_parts or [0]
        if shape.is_split:
            a.rows_per_part = -(-rows // parts)
            a.dgamma_parts, a.dbeta_parts = at_parts[0], at_parts[-1]
            of_slices = (rows, shape.slices, of_slice)
            a.slices, _ = run.output("norm_backward_slices", "slices", of_slices, "fp32")
            run.launch_split(a, parts)
        else:
            a.groups, a.dgamma, a.dbeta = groups, at_parts[0], at_parts[-1]
            lds = shape.configuration.combine_bytes(shape.hidden, shape.vector, sums)
            run.launch_rows(kernel, a, groups, lds)
        r, reduce = arguments_of("norm_backward_reduce"), "norm_backward_reduce"
        for i in range(0 if few else sums):
            r.parts[i] = at_parts[i]
            r.sum[i], array = run.output(reduce, f"sum {i}", (shape.hidden,), wt)
            results.append(array)
        r.count, r.side = parts, 1 if hard else 32
        if sums and not few:
            run.launch_reduce(r, sums)
        factor = gamma.astype(np.float64) + shape.macros["NORM_ZERO_CENTRED"]
        if not has_gamma:
            factor = np.ones(shape.hidden)
        want = reference.norm_backward(
            x.astype(np.float64), dy.astype(np.float64),
            dh.astype(np.float64) if shape.macros["NORM_ADD"] else 0.0, m, factor, shape.layer,
        )  # fmt: skip
        _check("dx", want.dx, run.result(dx), xt)
        if sums and not hard:  # a hard row makes every column NaN
            _check("dgamma", want.dgamma, results[0], wt)
            if shape.layer:
                _check("dbeta", want.dbeta, results[1], wt)


_BARRIERS = [
    (shape, kernel)
    for name, kernel in (
        ("rms_forward_bf16_4096", "norm_forward"),
        ("rms_add_backward_bf16_768", "norm_backward"),
        ("rms_add_backward_bf16_768", "norm_backward_reduce"),
        ("rms_backward_bf16_2048", "norm_backward"),
        ("hundreds_rms_backward_bf16_4096", "norm_backward"),
        ("layer_long_fp16_20480", "norm_backward_slices"),
        ("layer_long_fp16_20480", "norm_backward_long"),
    )
    for shape in shapes()
    # A wave that has a row alone waits for no other.
    if shape.name == name and (kernel != "norm_forward" or shape.macros["ROW_LANES"] > 64)
]


def test_there_are_barriers_to_delete() -> None:
    assert {shape.arch for shape, _ in _BARRIERS} == {shape.arch for shape in shapes()}


@pytest.mark.parametrize(("shape", "kernel"), _BARRIERS, ids=str)
def test_a_deleted_barrier_is_noticed(shape: Shape, kernel: str) -> None:
    """The first that guards something: some guard an access of CUDA alone, or one wave from
    itself."""

    def is_noticed(place: int) -> bool:
        try:
            if shape.source == "norm_forward":
                _norm_forward(shape, SCHEDULES[0], (kernel, place))
            else:
                _norm_backward(shape, False, SCHEDULES[0], (kernel, place))
        except EmulationError as error:
            return "race" in str(error)
        return False

    assert any(is_noticed(place) for place in barriers(shape, kernel))


def _mask_kind(shape: Shape) -> str:
    return ("none", "explicit", "causal")[shape.macros["SOFTMAX_MASK"]]


def _softmax_rows(shape: Shape) -> tuple[int, int, int]:
    """Rows, queries and workgroups. With the causal mask there are more queries than columns where
    that costs little, so that some have no column at all."""
    if _mask_kind(shape) == "causal":
        queries = shape.hidden + 3 if shape.hidden < 200 else 7
        return queries + 5, queries, 2
    rows, groups = _count(shape)
    return -(-rows // 8) * 8, 4, groups


@each_schedule
@pytest.mark.parametrize("shape", _of("softmax_forward"), ids=str)
def test_softmax_forward(shape: Shape, schedule: str) -> None:
    random, kernel, dtype = _random(shape), "softmax_forward", shape.dtype("SOFTMAX_X")
    rows, queries, groups = _softmax_rows(shape)
    x = 3 * random.standard_normal((rows, shape.hidden))
    _hard_rows(x, "fp16")
    x[9] = -np.inf
    x[10, : shape.hidden // 2] = -np.inf
    x[11] += 30000
    x = x.astype(TYPES[dtype])
    masked = None
    with Run(shape, schedule) as run:
        a = arguments_of(kernel)
        a.rows, a.groups, a.queries, a.scale = rows, groups, queries, _SOFTMAX_SCALE
        set_pointer(a, "x", *run.matrix("x", x))
        a.y, a.y_stride, y = run.output_matrix(kernel, "y", rows, dtype)
        if _mask_kind(shape) == "explicit":
            matrices = rows // queries // _MASK_REPEAT
            mask = (random.random((matrices, queries, shape.hidden)) < 0.3).astype(np.uint8)
            mask[0, :2] = 1
            mask[0, 1, shape.hidden // 2] = 0  # in row 5 a NaN, which all of the row becomes
            set_pointer(a, "mask", run.vector("mask", mask))
            a.mask_repeat = _MASK_REPEAT
            masked = np.repeat(mask, _MASK_REPEAT, axis=0).reshape(rows, -1) == 1
        run.launch_rows(kernel, a, groups)
        allowed = _allowed(shape, rows, queries)
        want = reference.softmax_forward(x.astype(np.float64), a.scale, masked, allowed)
        _check("y", want, run.result(y), dtype)


def _allowed(shape: Shape, rows: int, queries: int) -> Array:
    if _mask_kind(shape) == "causal":
        return reference.causal_columns(rows, shape.hidden, queries)
    return np.ones((rows, shape.hidden), bool)


@each_schedule
@pytest.mark.parametrize("shape", _of("softmax_backward"), ids=str)
def test_softmax_backward(shape: Shape, schedule: str) -> None:
    random, kernel, dtype = _random(shape), "softmax_backward", shape.dtype("SOFTMAX_X")
    rows, queries, groups = _softmax_rows(shape)
    allowed = _allowed(shape, rows, queries)
    scores = np.where(allowed, 3 * random.standard_normal((rows, shape.hidden)), -np.inf)
    exponentials = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e9))
    y = exponentials / np.maximum(exponentials.sum(-1, keepdims=True), 1e-300)
    y = y.astype(TYPES[dtype])
    dy = random.standard_normal(y.shape).astype(TYPES[dtype])
    with Run(shape, schedule) as run:
        a = arguments_of(kernel)
        a.rows, a.groups, a.queries, a.scale = rows, groups, queries, _SOFTMAX_SCALE
        set_pointer(a, "y", *run.matrix("y", y))
        set_pointer(a, "dy", *run.matrix("dy", dy))
        a.dx, a.dx_stride, dx = run.output_matrix(kernel, "dx", rows, dtype)
        run.launch_rows(kernel, a, groups)
        want = reference.softmax_backward(
            y.astype(np.float64), dy.astype(np.float64), a.scale, allowed
        )
        _check("dx", want, run.result(dx), dtype)
