# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""fp8 on the CPU: against float64, with elements, scales and results as their formats say."""

from __future__ import annotations

from typing import Any

import aiter_attn
import ml_dtypes
import numpy
import pytest

from tests.support.python.attention import attention
from tests.support.python.calls import (
    Refusal,
    backward,
    check_refused,
    draw,
    explained,
    flash,
    forward,
)
from tests.support.python.calls import varlen as flash_varlen
from tests.support.python.dlpack_exporter import KDL_ROCM, Exporter

OCP, FNUZ = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz
SCALES = {"q_descale": 0.5, "k_descale": 3.0, "v_descale": 0.25, "out_scale": 40.0}
ONES = dict.fromkeys(SCALES, 1.0)
# The largest number, and the exponent of the least normal one.
FORMATS = {OCP: (448.0, -6), FNUZ: (240.0, -7)}
each_format = pytest.mark.parametrize("dtype", FORMATS)


def numbers(dtype: Any, *shape: int, seed: int = 0) -> Any:
    return numpy.random.default_rng(seed).standard_normal(shape).astype(dtype)


def exact_of(q: Any, k: Any, v: Any, scale: float, causal: bool) -> tuple[Any, Any]:
    """(out, lse) of one sequence, [tokens, heads, size], with SCALES; in float64."""
    descales = (SCALES[f"{x}_descale"] for x in "qkv")
    q, k, v = (x.astype(float) * by for x, by in zip((q, k, v), descales, strict=True))
    out, lse = attention(q, k, v, scale=scale, causal=causal)
    return SCALES["out_scale"] * out, lse


def check_rounded(got: Any, exact: Any, dtype: Any) -> None:
    """The nearest number of the format; numbers beyond the largest become it."""
    largest, least = FORMATS[dtype]
    assert got.dtype == dtype
    exact = numpy.clip(exact, -largest, largest)
    unit = 2.0 ** (numpy.maximum(numpy.frexp(exact)[1] - 1, least) - 3)
    error = numpy.abs(got.astype(float) - exact) / unit
    assert error.max() <= 0.5 + 1e-6, error.max()


@each_format
@pytest.mark.parametrize("causal", [False, True])
def test_one_length(dtype: Any, causal: bool) -> None:
    q, k, v = (numbers(dtype, 2, n, h, d) for n, h, d in [(9, 4, 16), (20, 2, 16), (20, 2, 24)])
    given = {"softmax_scale": 0.3, "causal": causal, **SCALES}
    out, lse, _ = aiter_attn.flash_attn_func(q, k, v, return_attn_probs=True, **given)
    for b in range(2):
        exact, exact_lse = exact_of(q[b], k[b], v[b], 0.3, causal)
        check_rounded(out[b], exact, dtype)
        numpy.testing.assert_allclose(lse[b], exact_lse, rtol=1e-6)
    by_columns = numpy.ascontiguousarray(v.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    same = aiter_attn.flash_attn_func(q, k, by_columns, **given)
    numpy.testing.assert_array_equal(same.view(numpy.uint8), out.view(numpy.uint8))


@each_format
def test_lengths_that_differ(dtype: Any) -> None:
    starts_q, starts_k = numpy.int32([0, 3, 9]), numpy.int32([0, 10, 17])
    q, k, v = numbers(dtype, 9, 4, 16), numbers(dtype, 17, 2, 16), numbers(dtype, 17, 2, 16)
    out = aiter_attn.flash_attn_varlen_func(
        q, k, v, starts_q, starts_k, 6, 10, causal=True, **SCALES
    )
    for b in range(2):
        rows, keys = slice(*starts_q[b : b + 2]), slice(*starts_k[b : b + 2])
        exact, _ = exact_of(q[rows], k[keys], v[keys], 0.25, True)
        check_rounded(out[rows], exact, dtype)


# The dtype of a wider out, and half a unit in its last place.
WIDER = {"bfloat16": (ml_dtypes.bfloat16, 2.0**-8), "float32": (numpy.float32, 2.0**-24)}
DESCALES = {name: scale for name, scale in SCALES.items() if name != "out_scale"}


@each_format
@pytest.mark.parametrize("name", WIDER)
@pytest.mark.parametrize("varlen", [False, True])
def test_a_wider_out_holds_the_result_itself(dtype: Any, name: str, varlen: bool) -> None:
    kind, unit = WIDER[name]
    q, k, v = (numbers(dtype, *shape) for shape in [(9, 4, 16), (20, 2, 16), (20, 2, 24)])
    options = {"causal": True, "out_dtype": name, "return_attn_probs": True, **DESCALES}
    if varlen:
        starts = numpy.int32([0, 9]), numpy.int32([0, 20])
        out, lse, _ = aiter_attn.flash_attn_varlen_func(q, k, v, *starts, 9, 20, **options)
    else:
        out, lse, _ = aiter_attn.flash_attn_func(q[None], k[None], v[None], **options)
        out, lse = out[0], lse[0]
    exact, exact_lse = exact_of(q, k, v, 0.25, True)
    exact /= SCALES["out_scale"]
    assert out.dtype == kind
    error = numpy.abs(out.astype(float) - exact)
    assert (error <= unit * numpy.abs(exact) + 1e-7).all()
    numpy.testing.assert_allclose(lse, exact_lse, rtol=1e-6)


@each_format
def test_what_is_beyond_the_largest_number_becomes_it(dtype: Any) -> None:
    q = numbers(dtype, 1, 9, 2, 16)
    out = aiter_attn.flash_attn_func(q, q, q, **{**ONES, "out_scale": 1e6})
    assert set(numpy.abs(out.astype(float)).ravel()) == {FORMATS[dtype][0]}


def test_scales_as_flash_attn_3_has_them() -> None:
    q, k = numbers(OCP, 2, 9, 4, 16), numbers(OCP, 2, 20, 2, 16)
    want = aiter_attn.flash_attn_func(q, k, k, **SCALES)
    for shape in ((2, 2), (1,), ()):
        arrays = {name: numpy.full(shape, x, numpy.float32) for name, x in SCALES.items()}
        arrays["k_descale"] = numpy.broadcast_to(numpy.float32(SCALES["k_descale"]), shape)
        got = aiter_attn.flash_attn_func(q, k, k, **arrays)
        numpy.testing.assert_array_equal(got.view(numpy.uint8), want.view(numpy.uint8))


@each_format
def test_arrays_of_other_producers(dtype: Any) -> None:
    q = numbers(dtype, 1, 9, 2, 16)
    lent = Exporter(q)
    got = aiter_attn.flash_attn_func(q, lent, lent, **SCALES)
    want = aiter_attn.flash_attn_func(q, q, q, **SCALES)
    numpy.testing.assert_array_equal(got.view(numpy.uint8), want.view(numpy.uint8))


def test_a_plan_asks_for_the_format_of_the_arch() -> None:
    with pytest.raises(aiter_attn.UnsupportedError, match="kernels for gfx942 compute with 6"):
        explained(dtype="float8_e4m3fn")
    with pytest.raises(aiter_attn.UnsupportedError, match="no fwd kernel in this build for fp8"):
        explained(dtype="float8_e4m3fnuz")
    with pytest.raises(TypeError, match="has no gradient"):
        explained(dtype="float8_e4m3fnuz", backward=True)
    for name, kernels in (("bfloat16", "fp8bf16"), ("float32", "fp8fp32")):
        with pytest.raises(
            aiter_attn.UnsupportedError, match=f"no fwd kernel in this build for {kernels}"
        ):
            explained(dtype="float8_e4m3fnuz", out_dtype=name)
    with pytest.raises(ValueError, match=r"^out_dtype: 'float32', but backward is True; allowed"):
        explained(dtype="float16", out_dtype="float32", backward=True)
    with pytest.raises(ValueError, match=r"^out_dtype: 'float32', but q is float16; allowed here"):
        explained(dtype="float16", out_dtype="float32")


Q, K = numbers(OCP, 2, 5, 4, 8), numbers(OCP, 2, 7, 2, 8)
FP8 = {"q": Q, "k": K, "v": K, **ONES}
_ALONE = (
    "allowed: float16, bfloat16, and on the CPU float32; fp8 is float8_e4m3fn or float8_e4m3fnuz, "
    "in flash_attn_func and flash_attn_varlen_func alone, and has no gradient"
)


def on_gpu(array: Any) -> Any:
    return Exporter(array, device=(KDL_ROCM, 0))


def kvcache(**arrays: Any) -> Any:
    return aiter_attn.flash_attn_with_kvcache(**arrays)


def packed(**arrays: Any) -> Any:
    return aiter_attn.flash_attn_qkvpacked_func(**arrays)


WRONG: dict[str, Refusal] = {
    **{
        f"no {name}": (
            flash,
            {**FP8, name: None},
            ValueError,
            f"{name}: None, but q is float8_e4m3fn; allowed: a number above 0, the factor of ",
        )
        for name in SCALES
    },
    "a scale of halves": (
        flash,
        {"k_descale": 2.0},
        ValueError,
        "k_descale: 2.0, but q is float16; allowed here: None, as scales are for fp8",
    ),
    "a scale of pages": (
        flash_varlen,
        {"block_table": numpy.zeros((2, 1), numpy.int32), "v_descale": 1.0},
        ValueError,
        "v_descale: 1.0, but there is no fp8 beside block_table; allowed here: None",
    ),
    "an out_scale of a wider out": (
        flash,
        {**FP8, "out_dtype": "float32"},
        ValueError,
        "out_scale: 1.0, but out_dtype is float32; allowed: None, as such an out holds the result",
    ),
    "an out_dtype that kernels have not": (
        flash,
        {**FP8, "out_dtype": "float16", "out_scale": None},
        ValueError,
        'out_dtype: \'float16\'; allowed here: "bfloat16", "float32", or None: float8_e4m3fn',
    ),
    "an out_dtype that is no name": (
        flash,
        {**FP8, "out_dtype": 2, "out_scale": None},
        TypeError,
        'out_dtype: 2; allowed here: "bfloat16", "float32", or None',
    ),
    "an out_dtype of halves": (
        flash,
        {"out_dtype": "float32"},
        ValueError,
        "out_dtype: 'float32', but q is float16; allowed here: None, as it is for fp8",
    ),
    "a scale of a wider out that float32 cannot hold": (
        flash,
        {**FP8, "v_descale": 1e-40, "out_dtype": "float32", "out_scale": None},
        ValueError,
        "v_descale: 1e-40; allowed: 1.18e-38 to 3.4e+38: choose other scales",
    ),
    "a scale of 0": (flash, {**FP8, "q_descale": 0.0}, ValueError, "q_descale: 0.0; allowed"),
    "a scale below 0": (flash, {**FP8, "v_descale": -1}, ValueError, "v_descale: -1.0; allowed"),
    "an infinite scale": (
        flash,
        {**FP8, "out_scale": float("inf")},
        ValueError,
        "out_scale: inf; allowed",
    ),
    "a scale that is no number": (
        flash,
        {**FP8, "out_scale": "1"},
        TypeError,
        "out_scale: '1'; allowed: a number above 0, the factor of the result",
    ),
    "scales that float32 cannot multiply": (
        flash,
        {**FP8, "q_descale": 1e-30, "k_descale": 1e-30},
        ValueError,
        "softmax_scale * q_descale * k_descale: 3.5",
    ),
    "results that float32 cannot multiply": (
        flash,
        {**FP8, "v_descale": 1e30, "out_scale": 1e30},
        ValueError,
        "to 3.4e+38: choose other scales",
    ),
    "scales by head": (
        flash,
        {**FP8, "k_descale": numpy.float32([[1, 2], [1, 2]])},
        NotImplementedError,
        "k_descale: entries that differ; Composable Kernel's fp8 kernels have one scale",
    ),
    "a scale that is no number at all": (
        flash,
        {**FP8, "k_descale": numpy.float32([numpy.nan])},
        ValueError,
        "k_descale: nan; allowed: a number above 0",
    ),
    "scales that are no number at all": (
        flash,
        {**FP8, "k_descale": numpy.full((2, 2), numpy.nan, numpy.float32)},
        ValueError,
        "k_descale: nan; allowed: a number above 0",
    ),
    "scales of query heads": (
        flash,
        {**FP8, "q_descale": draw(2, 4, dtype=numpy.float32)},
        ValueError,
        "q_descale: shape (2, 4); allowed here: (2, 2) [batch, heads_k], (1,), (), or a float",
    ),
    "scales of halves": (
        flash,
        {**FP8, "q_descale": draw(2, 2)},
        TypeError,
        "q_descale: dtype float16; allowed: float32, or a float",
    ),
    "scales on a GPU": (
        flash,
        {**FP8, "q_descale": on_gpu(draw(1, dtype=numpy.float32))},
        NotImplementedError,
        "q_descale: on ROCm:0; Composable Kernel's fp8 kernels take scales as numbers",
    ),
    "two formats": (
        flash,
        {**FP8, "v": K.astype(FNUZ)},
        TypeError,
        "v: dtype float8_e4m3fnuz; allowed here: float8_e4m3fn, as q has",
    ),
    "fp8 keys of halves": (flash, {"k": K}, TypeError, f"k: dtype float8_e4m3fn; {_ALONE}"),
    "e5m2": (
        flash,
        {**FP8, "q": Q.astype(ml_dtypes.float8_e5m2), **dict.fromkeys(ONES)},
        TypeError,
        f"q: dtype float8_e5m2; {_ALONE}",
    ),
    "v with neither contiguous": (
        flash,
        {**FP8, "v": numbers(OCP, 2, 7, 2, 16)[..., ::2]},
        ValueError,
        "v: strides (224, 32, 16, 2) (in elements); the last must be 1",
    ),
    "v by columns of lengths that differ": (
        flash_varlen,
        {
            **{name: numbers(OCP, 7, 2, 8) for name in "qk"},
            "v": numbers(OCP, 8, 2, 7).transpose(2, 1, 0),
            "cu_seqlens_q": numpy.int32([0, 3, 7]),
            "max_seqlen_q": 4,
            **ONES,
        },
        ValueError,
        "v: strides (1, 7, 14) (in elements); the last must be 1",
    ),
    "the passes by themselves": (
        forward,
        {name: FP8[name] for name in "qkv"},
        TypeError,
        f"q: dtype float8_e4m3fn; {_ALONE}",
    ),
    "a gradient": (
        backward,
        {name: FP8[name] for name in "qkv"},
        TypeError,
        f"q: dtype float8_e4m3fn; {_ALONE}",
    ),
    "packed": (
        packed,
        {"qkv": numbers(OCP, 2, 5, 3, 2, 8)},
        TypeError,
        f"qkv: dtype float8_e4m3fn; {_ALONE}",
    ),
    "a cache": (
        kvcache,
        {"q": Q, "k_cache": K, "v_cache": K},
        TypeError,
        f"q: dtype float8_e4m3fn; {_ALONE}",
    ),
    "v by rows on a GPU": (
        flash,
        {**FP8, **{name: on_gpu(FP8[name]) for name in "qkv"}},
        NotImplementedError,
        "v: strides (112, 16, 8, 1) (in elements); Composable Kernel's fp8 kernels take v with "
        "contiguous keys",
    ),
    "v by columns on a GPU with a wider out": (
        flash,
        {
            **FP8,
            **{name: on_gpu(FP8[name]) for name in "qk"},
            "v": on_gpu(numbers(OCP, 2, 8, 2, 7).transpose(0, 3, 2, 1)),
            "out_dtype": "bfloat16",
            "out_scale": None,
        },
        NotImplementedError,
        "v: strides (112, 1, 7, 14) (in elements); Composable Kernel's fp8 kernels take v with "
        "contiguous elements of heads where out is bfloat16",
    ),
    "lengths that differ on a GPU": (
        flash_varlen,
        {
            **{name: on_gpu(numbers(OCP, 7, 2, 8)) for name in "qkv"},
            **{f"cu_seqlens_{name}": on_gpu(numpy.int32([0, 3, 7])) for name in "qk"},
            "max_seqlen_q": 4,
            **ONES,
        },
        NotImplementedError,
        "q: dtype float8_e4m3fn; Composable Kernel has no fp8 kernel for sequences of different",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name: str) -> None:
    check_refused(WRONG[name])
