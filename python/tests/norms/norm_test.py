# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Norms and softmax on host arrays, against float64, and their refusals."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiter_attn
import ml_dtypes
import numpy
import pytest
from aiter_attn import _C
from numpy.lib.stride_tricks import as_strided

from tests.support.python.dlpack_exporter import Exporter, Standard

DTYPES = {
    "float16": (numpy.dtype("float16"), 2.0**-10),
    "bfloat16": (numpy.dtype(ml_dtypes.bfloat16), 2.0**-7),
    "float32": (numpy.dtype("float32"), 2.0**-22),
}


def draw(dtype: str, *shape: int, seed: int = 0) -> Any:
    return numpy.random.default_rng(seed).standard_normal(shape).astype(DTYPES[dtype][0])


def wide(array: Any) -> Any:
    return array.astype(numpy.float64)


def assert_close(got: Any, want: Any, dtype: str) -> None:
    kind, unit = DTYPES[dtype]
    assert got.dtype == kind
    assert got.shape == want.shape
    numpy.testing.assert_allclose(wide(got), want, rtol=unit, atol=unit)


def derivative(loss: Callable[[Any], float], at: Any) -> Any:
    step, out = 1e-5, numpy.zeros(at.shape)
    for i in numpy.ndindex(at.shape):
        moved = at.copy()
        moved[i] += step
        above = loss(moved)
        moved[i] -= 2 * step
        out[i] = (above - loss(moved)) / (2 * step)
    return out


def norm(x: Any, gamma: Any, beta: Any, layer: bool) -> Any:
    mean = x.mean(-1, keepdims=True) if layer else 0.0
    variance = numpy.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) / numpy.sqrt(variance + 1e-5) * gamma + beta


@pytest.mark.parametrize("weights", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rms_norm(dtype: str, weights: str) -> None:
    x, residual = draw(dtype, 2, 3, 20), draw(dtype, 2, 3, 20, seed=1)
    gamma, dy = draw(weights, 20, seed=2), draw(dtype, 2, 3, 20, seed=3)
    y, rstd, total = aiter_attn.rms_norm_fwd(
        x, gamma, residual=residual, epsilon=1e-5, zero_centred=True
    )
    assert_close(total, wide(x) + wide(residual), dtype)
    h, factor = wide(total), wide(gamma) + 1
    assert_close(y, norm(h, factor, 0.0, False), dtype)
    assert rstd.shape == (2, 3)
    dx, dgamma = aiter_attn.rms_norm_bwd(dy, total, gamma, rstd, dh=residual, zero_centred=True)
    by_x = derivative(lambda v: float((norm(v, factor, 0.0, False) * wide(dy)).sum()), h)
    by_gamma = derivative(lambda v: float((norm(h, v, 0.0, False) * wide(dy)).sum()), factor)
    assert_close(dx, by_x + wide(residual), dtype)
    assert_close(dgamma, by_gamma, weights)


@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_norm(dtype: str) -> None:
    x, gamma, beta = draw(dtype, 5, 12), draw(dtype, 12, seed=1), draw(dtype, 12, seed=2)
    dy = draw(dtype, 5, 12, seed=3)
    y, mean, rstd, total = aiter_attn.layer_norm_fwd(x, gamma, beta)
    assert total is None
    assert_close(y, norm(wide(x), wide(gamma), wide(beta), True), dtype)
    assert_close(mean, wide(x).mean(-1), "float32")
    dx, dgamma, dbeta = aiter_attn.layer_norm_bwd(dy, x, gamma, mean, rstd)
    by_x = derivative(lambda v: float((norm(v, wide(gamma), 0.0, True) * wide(dy)).sum()), wide(x))
    assert_close(dx, by_x, dtype)
    assert_close(dgamma, (wide(dy) * norm(wide(x), 1.0, 0.0, True)).sum(0), dtype)
    assert_close(dbeta, wide(dy).sum(0), dtype)


def softmax(x: Any, allowed: Any) -> Any:
    e = numpy.where(allowed, numpy.exp(x), 0.0)
    return e / numpy.maximum(e.sum(-1, keepdims=True), 1e-300)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax(dtype: str, causal: bool) -> None:
    x, dy = draw(dtype, 2, 4, 3), draw(dtype, 2, 4, 3, seed=1)
    allowed = numpy.ones((4, 3), bool)
    if causal:
        allowed = numpy.arange(3) <= numpy.arange(4)[:, None] + 3 - 4
    y = aiter_attn.softmax_fwd(x, scale=0.5, causal=causal)
    assert_close(y, softmax(0.5 * wide(x), allowed), dtype)
    dx = aiter_attn.softmax_bwd(dy, y, scale=0.5, causal=causal)
    y64, dy64 = wide(y), wide(dy)
    assert_close(dx, 0.5 * y64 * (dy64 - (y64 * dy64).sum(-1, keepdims=True)), dtype)


def test_softmax_with_a_mask() -> None:
    """Two masks for four matrices; a row of 1s alone gives zeros."""
    x = draw("float32", 4, 2, 3)
    mask = numpy.array([[[1, 1, 1], [0, 1, 0]], [[0, 0, 0], [1, 0, 1]]], numpy.uint8)
    y = aiter_attn.softmax_fwd(x, mask=mask)
    want = softmax(wide(x), numpy.repeat(mask, 2, axis=0) == 0)
    assert_close(y, want, "float32")


def test_rows_with_gaps_and_no_rows() -> None:
    whole = draw("float32", 6, 40)
    gamma = draw("float32", 16, seed=1)
    y, _, _ = aiter_attn.rms_norm_fwd(whole[::2, 8:24], gamma, epsilon=1e-5)
    assert_close(y, norm(wide(whole[::2, 8:24]), wide(gamma), 0.0, False), "float32")
    empty, rstd, _ = aiter_attn.rms_norm_fwd(whole[:0, :16], gamma)
    assert empty.shape == (0, 16)
    _, dgamma = aiter_attn.rms_norm_bwd(empty, empty, gamma, rstd)
    assert not dgamma.any()
    # Strides of arrays without elements are as their makers like.
    for empty in (whole.reshape(2, 3, 40)[:, :0], numpy.zeros((2, 0, 40), numpy.float32)):
        y, rstd, _ = aiter_attn.rms_norm_fwd(empty[..., :16], gamma)
        assert (y.shape, rstd.shape) == ((2, 0, 16), (2, 0))


def test_a_row_with_nan_is_nan_under_a_mask() -> None:
    x = numpy.array([[numpy.nan, 1, 2]], numpy.float32)
    y = aiter_attn.softmax_fwd(x, mask=numpy.array([[[0, 1, 1]]], numpy.uint8))
    assert numpy.isnan(y).all()


def read_only(shape: tuple[int, ...], dtype: Any) -> Any:
    array = numpy.zeros(shape, dtype)
    array.setflags(write=False)
    return array


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda shape, dtype: numpy.zeros((*shape, 1), dtype), r"with shape \(2, 3, 8, 1\)"),
        (lambda shape, _: numpy.zeros(shape, "float16"), "dtype float16"),
        (lambda shape, dtype: numpy.zeros(shape, dtype, order="F"), r"strides \(1, 2, 6\)"),
        (read_only, "read-only, with shape"),
    ],
    ids=["another shape", "another dtype", "Fortran order", "read-only"],
)
def test_results_that_a_namespace_makes_are_checked(make: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"^y: Standard's namespace made it .*{message}.*; pass x "):
        aiter_attn.rms_norm_fwd(Standard(X, make), GAMMA)


def test_who_cannot_make_results_is_told_what_can() -> None:
    with pytest.raises(TypeError, match=r"^y: cannot be made for Exporter.*; pass x as a numpy"):
        aiter_attn.rms_norm_fwd(Exporter(X), GAMMA)


def test_results_are_of_the_framework_whose_dtype_they_have() -> None:
    x = Standard(X, numpy.empty)
    y, rstd, _ = aiter_attn.rms_norm_fwd(x, GAMMA)
    assert (type(y), type(rstd)) == (Standard, Standard)
    dx, dgamma = aiter_attn.rms_norm_bwd(X, x, GAMMA, RSTD)
    assert (type(dx), type(dgamma)) == (Standard, numpy.ndarray)
    assert type(aiter_attn.softmax_bwd(X, y)) is Standard


def test_a_name_that_no_field_has() -> None:
    with pytest.raises(TypeError, match='no number of this call is named "hiden"'):
        _C.norm_fwd({"hiden": 8}, {})
    tensor = _C.Tensor.from_buffer(X, "float32")
    for call in (_C.norm_fwd, _C.norm_bwd, _C.softmax_fwd, _C.softmax_bwd):
        with pytest.raises(TypeError, match='no array of this call is named "z"'):
            call({}, {"z": tensor})


X, GAMMA = draw("float32", 2, 3, 8), draw("float32", 8)
RSTD = numpy.ones((2, 3), numpy.float32)
MASK = numpy.zeros((1, 3, 8), numpy.uint8)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: aiter_attn.rms_norm_fwd([1], GAMMA), TypeError, "x: list is no array"),
        (
            lambda: aiter_attn.rms_norm_fwd(X.astype(float), GAMMA),
            TypeError,
            "x: dtype float64; allowed: float16, bfloat16, float32",
        ),
        (
            lambda: aiter_attn.rms_norm_fwd(X, GAMMA[:7]),
            ValueError,
            r"gamma: shape \(7,\); allowed: \(8,\)",
        ),
        (
            lambda: aiter_attn.rms_norm_fwd(X[..., :0], GAMMA[:0]),
            ValueError,
            r"x: shape \(2, 3, 0\); allowed: a last dimension of at least 1",
        ),
        (
            lambda: aiter_attn.rms_norm_fwd(numpy.array(1, numpy.float32), GAMMA),
            ValueError,
            r"x: shape \(\); allowed: at least one dimension",
        ),
        (
            lambda: aiter_attn.rms_norm_fwd(X[..., ::2], GAMMA[:4]),
            ValueError,
            "x: strides .* the last must be 1",
        ),
        (
            lambda: aiter_attn.rms_norm_fwd(draw("float32", 2, 4, 8)[:, :3], GAMMA),
            ValueError,
            "stride of dimension 0 is 32 elements; allowed: 24, so that rows are equally far",
        ),
        (
            lambda: aiter_attn.rms_norm_fwd(
                as_strided(GAMMA, (2, 8, 8), (4, 2**62, 4)), GAMMA, epsilon=1
            ),
            ValueError,
            f"stride of dimension 1 is {2**60} elements; 8 of them exceed the address space",
        ),
        (
            lambda: aiter_attn.rms_norm_fwd(X, GAMMA, residual=X.astype(numpy.float16)),
            TypeError,
            "residual: dtype float16; allowed: float32",
        ),
        (
            lambda: aiter_attn.rms_norm_fwd(X, GAMMA, epsilon=-1),
            ValueError,
            "epsilon: -1.0; allowed: a finite number from 0 on",
        ),
        (
            lambda: aiter_attn.layer_norm_fwd(X, GAMMA, GAMMA.astype(numpy.float16)),
            TypeError,
            "beta: dtype float16; allowed: float32",
        ),
        (
            lambda: aiter_attn.rms_norm_bwd(X, X, GAMMA, RSTD[0]),
            ValueError,
            r"rstd: shape \(3,\); allowed: \(2, 3\)",
        ),
        (
            lambda: aiter_attn.rms_norm_bwd(X, X, GAMMA, numpy.ones((3, 2), numpy.float32).T),
            ValueError,
            "rstd: strides",
        ),
        (
            lambda: aiter_attn.softmax_bwd(X[..., :0], X[..., :0]),
            ValueError,
            r"^y: shape \(2, 3, 0\); allowed: a last dimension of at least 1",
        ),
        (
            lambda: aiter_attn.softmax_fwd(X, mask=MASK, causal=True),
            ValueError,
            "mask: with causal=True; allowed: one of the two",
        ),
        (
            lambda: aiter_attn.softmax_fwd(X, mask=MASK[:, :2]),
            ValueError,
            r"mask: shape \(1, 2, 8\); allowed: \[masks, queries, columns\] of x",
        ),
        (
            lambda: aiter_attn.softmax_fwd(X, mask=MASK.astype(numpy.int32)),
            TypeError,
            "mask: dtype int32; allowed: uint8",
        ),
        (
            lambda: aiter_attn.softmax_fwd(X, scale=float("nan")),
            ValueError,
            "scale: nan; allowed: a finite number",
        ),
        (
            lambda: aiter_attn.softmax_bwd(X[..., :0], X[..., :0]),
            ValueError,
            r"^y: shape \(2, 3, 0\); allowed: a last dimension of at least 1",
        ),
    ],
)
def test_refusals(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("y_dtype", "largest", "unit"),
    [("float8_e4m3fn", 448, 2.0**-3), ("float8_e5m2", 57344, 2.0**-2)],
)
def test_fp8_results(y_dtype: str, largest: float, unit: float) -> None:
    x, gamma = draw("float32", 2, 3, 20), draw("float32", 20, seed=1)
    scale = numpy.array([largest / 2], numpy.float32)
    amax = numpy.zeros(1, numpy.float32)
    y, _, _ = aiter_attn.rms_norm_fwd(
        x, gamma, epsilon=1e-5, y_dtype=y_dtype, scale=scale, amax=amax
    )
    want = norm(wide(x), wide(gamma), 0.0, False)
    assert y.dtype == numpy.dtype(y_dtype)
    scaled = numpy.clip(want * wide(scale), -largest, largest)
    numpy.testing.assert_allclose(wide(y), scaled, rtol=unit, atol=unit)
    numpy.testing.assert_allclose(amax, numpy.abs(want).max(), rtol=1e-6)
    aiter_attn.rms_norm_fwd(x * 0, gamma, y_dtype=y_dtype, amax=amax)
    numpy.testing.assert_allclose(amax, numpy.abs(want).max(), rtol=1e-6)


@pytest.mark.parametrize("y_dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("x_dtype", ["float32", "bfloat16"])
def test_results_of_another_dtype_than_x(x_dtype: str, y_dtype: str) -> None:
    x, gamma = draw(x_dtype, 3, 20), draw("float32", 20, seed=1)
    want = norm(wide(x), wide(gamma), 0.0, False)
    y, rstd, h = aiter_attn.rms_norm_fwd(x, gamma, epsilon=1e-5, y_dtype=y_dtype, residual=x * 0)
    assert (y.dtype.name, rstd.dtype.name, h.dtype.name) == (y_dtype, "float32", x_dtype)
    unit = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-23}[y_dtype]
    numpy.testing.assert_allclose(wide(y), want, rtol=2 * unit + 1e-5, atol=unit)
    y, *_ = aiter_attn.layer_norm_fwd(x, gamma, y_dtype=y_dtype)
    assert y.dtype.name == y_dtype


def test_an_array_of_uneven_rows_is_named() -> None:
    x = numpy.zeros((4, 6, 8), numpy.float32)
    with pytest.raises(ValueError, match=r"^x: the stride of dimension 0 is 8 elements"):
        aiter_attn.rms_norm_fwd(x.transpose(1, 0, 2), numpy.ones(8, numpy.float32))


def test_fp8_refusals() -> None:
    allowed = "allowed: None, float16, bfloat16, float32, float8_e4m3fn, float8_e5m2"
    with pytest.raises(ValueError, match=rf"^y_dtype: 'int8'; {allowed}"):
        aiter_attn.rms_norm_fwd(X, GAMMA, y_dtype="int8")
    with pytest.raises(ValueError, match=r"^y_dtype: \[1\]; allowed: None"):
        aiter_attn.rms_norm_fwd(X, GAMMA, y_dtype=[1])  # type: ignore[arg-type]
    one = numpy.ones(1, numpy.float32)
    with pytest.raises(ValueError, match="scale: is for fp8 results"):
        aiter_attn.rms_norm_fwd(X, GAMMA, scale=one)
    one.flags.writeable = False
    with pytest.raises(ValueError, match="amax: is read-only"):
        aiter_attn.rms_norm_fwd(X, GAMMA, y_dtype="float8_e5m2", amax=one)


def test_an_fp8_result_that_cannot_be_had_changes_nothing() -> None:
    amax = numpy.zeros(1, numpy.float32)
    with pytest.raises(TypeError, match=r"^y: Standard has no float8_e4m3fn; pass torch or numpy"):
        aiter_attn.rms_norm_fwd(Standard(X, numpy.empty), GAMMA, y_dtype="float8_e4m3fn", amax=amax)
    assert amax == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_in_place(dtype: str) -> None:
    x, residual = draw(dtype, 2, 3, 20), draw(dtype, 2, 3, 20, seed=1)
    gamma, beta = draw(dtype, 20, seed=2), draw(dtype, 20, seed=3)
    want_y, _, want_h = aiter_attn.rms_norm_fwd(x, gamma, residual=residual)
    of_layer = aiter_attn.layer_norm_fwd(x, gamma, beta)[0]
    changed = x.copy()
    assert aiter_attn.layer_norm_fwd(changed, gamma, beta, in_place=True)[0] is changed
    numpy.testing.assert_array_equal(wide(changed), wide(of_layer))
    y, _, h = aiter_attn.rms_norm_fwd(x, gamma, residual=residual, in_place=True)
    assert (y is x, h is residual) == (True, True)
    numpy.testing.assert_array_equal(wide(x), wide(want_y))
    numpy.testing.assert_array_equal(wide(residual), wide(want_h))


def test_in_place_refusals() -> None:
    memory = numpy.zeros((5, 8), numpy.float32)
    gamma = numpy.ones(8, numpy.float32)
    rows, next_rows = memory[:4], memory[1:]
    with pytest.raises(ValueError, match="y overlaps residual: an output must share no byte"):
        aiter_attn.rms_norm_fwd(rows, gamma, residual=next_rows, in_place=True)
    with pytest.raises(ValueError, match="y overlaps residual"):
        aiter_attn.rms_norm_fwd(rows, gamma, residual=rows, in_place=True)
    with pytest.raises(ValueError, match="y overlaps gamma"):
        aiter_attn.rms_norm_fwd(rows, memory[2], in_place=True)
    with pytest.raises(ValueError, match="y_dtype: float16, but in_place is True and x has flo"):
        aiter_attn.rms_norm_fwd(rows, gamma, in_place=True, y_dtype="float16")
    with pytest.raises(TypeError, match="in_place: "):
        aiter_attn.rms_norm_fwd(rows, gamma, in_place="yes")  # type: ignore[arg-type]
    rows.flags.writeable = False
    with pytest.raises(ValueError, match="x: is read-only; pass a writable array"):
        aiter_attn.rms_norm_fwd(rows, gamma, in_place=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_without_gamma(dtype: str) -> None:
    x, dy = draw(dtype, 3, 20), draw(dtype, 3, 20, seed=1)
    ones = numpy.ones(20, x.dtype)
    y, rstd, _ = aiter_attn.rms_norm_fwd(x, None)
    want, _, _ = aiter_attn.rms_norm_fwd(x, ones)
    numpy.testing.assert_array_equal(wide(y), wide(want))
    dx, dgamma = aiter_attn.rms_norm_bwd(dy, x, None, rstd)
    assert dgamma is None
    want, _ = aiter_attn.rms_norm_bwd(dy, x, ones, rstd)
    numpy.testing.assert_array_equal(wide(dx), wide(want))
    beta = draw(dtype, 20, seed=2)
    y, mean, rstd, _ = aiter_attn.layer_norm_fwd(x, None, beta)
    want = aiter_attn.layer_norm_fwd(x, ones, beta)[0]
    numpy.testing.assert_array_equal(wide(y), wide(want))
    _, dgamma, dbeta = aiter_attn.layer_norm_bwd(dy, x, None, mean, rstd)
    assert dgamma is None
    numpy.testing.assert_allclose(wide(dbeta), wide(dy).sum(0), rtol=2**-7, atol=2**-7)
    for options in ({}, {"weight_gradients": False}):
        given: Any = aiter_attn.layer_norm_bwd(dy, x, ones, mean, rstd, **options)
        assert [gradient is None for gradient in given] == [False, *[bool(options)] * 2]
    with pytest.raises(ValueError, match="zero_centred: True without gamma; allowed: False"):
        aiter_attn.rms_norm_fwd(x, None, zero_centred=True)
    with pytest.raises(ValueError, match="zero_centred: True without gamma"):
        aiter_attn.rms_norm_bwd(dy, x, None, rstd, zero_centred=True)


@pytest.mark.parametrize(("y_dtype", "largest"), [("float8_e4m3fn", 448), ("float8_e5m2", 57344)])
def test_quantised(y_dtype: str, largest: float) -> None:
    x, residual = draw("float32", 2, 3, 96), draw("float32", 2, 3, 96, seed=1)
    gamma = draw("float32", 96, seed=2)
    want, _, want_h = aiter_attn.rms_norm_fwd(x, gamma, residual=residual)
    y, scales, rstd, h = aiter_attn.rms_norm_quantised(x, gamma, residual=residual, y_dtype=y_dtype)
    assert (y.dtype.name, scales.dtype.name, scales.shape) == (y_dtype, "float32", (2, 3))
    assert rstd.shape == (2, 3)
    numpy.testing.assert_array_equal(h, want_h)
    numpy.testing.assert_allclose(scales, numpy.abs(want).max(-1) / largest, rtol=1e-6)
    unit = 2.0**-4 if largest == 448 else 2.0**-3
    floor = 2.0**-9 if largest == 448 else 2.0**-16
    got, room = wide(y) * scales[..., None], floor * scales[..., None]
    assert (numpy.abs(got - want) <= unit * numpy.abs(want) + room).all()
    y, scales, _, _ = aiter_attn.rms_norm_quantised(
        x, gamma, residual=residual, y_dtype=y_dtype, scales="blocks", in_place=True
    )
    assert (scales.dtype.name, scales.shape) == ("uint8", (2, 3, 3))
    numpy.testing.assert_array_equal(residual, want_h)
    of_blocks = numpy.abs(want).reshape(2, 3, 3, 32).max(-1)
    exponents = scales.astype(int) - 127
    assert (of_blocks <= largest * 2.0**exponents).all()
    assert (of_blocks > largest * 2.0 ** (exponents - 1)).all()
    powers = numpy.repeat(2.0**exponents, 32, axis=-1)
    assert (numpy.abs(wide(y) * powers - want) <= unit * numpy.abs(want) + floor * powers).all()


def test_quantised_refusals() -> None:
    with pytest.raises(ValueError, match="scales: 'columns'; allowed: rows, blocks"):
        aiter_attn.rms_norm_quantised(X, GAMMA, scales="columns")
    with pytest.raises(ValueError, match="y_dtype: float16; allowed: float8_e4m3fn, float8_e5m2"):
        aiter_attn.rms_norm_quantised(X, GAMMA, y_dtype="float16")
    message = r"x: shape .*; allowed with blocks: a last dimension that 32 divides"
    with pytest.raises(ValueError, match=message):
        aiter_attn.rms_norm_quantised(X, GAMMA, scales="blocks")


def test_norms_are_the_results_of_their_passes() -> None:
    rng = numpy.random.default_rng(0)
    x, residual = (rng.standard_normal((3, 24)).astype(numpy.float32) for _ in range(2))
    gamma, beta = (rng.standard_normal(24).astype(numpy.float32) for _ in range(2))
    options: Any = {"epsilon": 1e-3, "zero_centred": True}
    for function, forward, arrays in (
        (aiter_attn.rms_norm, aiter_attn.rms_norm_fwd, (x, gamma)),
        (aiter_attn.layer_norm, aiter_attn.layer_norm_fwd, (x, gamma, beta)),
    ):
        made: Any = forward(*arrays, **options)
        numpy.testing.assert_array_equal(function(*arrays, **options), made[0])
        made = forward(*arrays, residual=residual, **options)
        y, h = function(*arrays, residual=residual, **options)
        numpy.testing.assert_array_equal(y, made[0])
        numpy.testing.assert_array_equal(h, made[-1])
    given: Any = {"scale": 0.5, "causal": True}
    want = aiter_attn.softmax_fwd(x, **given)
    numpy.testing.assert_array_equal(aiter_attn.softmax(x, **given), want)


def test_the_names_are_the_same_in_all_fronts() -> None:
    """rms_norm, layer_norm, softmax, and their passes; with the same arguments, but for those that
    operators and custom calls lack."""
    names = {
        f"{norm}{suffix}"
        for norm in ("rms_norm", "layer_norm", "softmax")
        for suffix in ("", "_fwd", "_bwd")
    }
    package = Path(aiter_attn.__file__).parent
    less_there = {"y_dtype", "amax", "scale", "in_place", "weight_gradients"}
    wanted = {n: list(inspect.signature(getattr(aiter_attn, n)).parameters) for n in names}
    for front in ("torch", "jax"):
        written = {
            node.name: [a.arg for a in (*node.args.args, *node.args.kwonlyargs)]
            for path in sorted((package / front).glob("_*.py"))
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.FunctionDef) and node.name in names
        }
        assert written.keys() == names
        for name, arguments in wanted.items():
            less = set() if name.startswith("softmax") else less_there
            assert written[name] == [a for a in arguments if a not in less], (front, name)
