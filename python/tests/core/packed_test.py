# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The packed forms against the separate ones, bit by bit: the same numbers in other memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aiter_attn
import ml_dtypes
import numpy
import pytest

from tests.support.python.calls import Refusal, check_refused
from tests.support.python.dlpack_exporter import Exporter, Standard

STATE = (7, 64)
STARTS_Q = numpy.array([0, 3, 3, 8], numpy.int32)
STARTS_K = numpy.array([0, 5, 6, 13], numpy.int32)
OPTIONS: dict[str, dict[str, Any]] = {
    "nothing else": {},
    "a window and a scale": {"window_size": (2, 1), "softmax_scale": 0.3, "softcap": 2.0},
    "causal, ALiBi": {"causal": True, "alibi_slopes": numpy.float32([0.5, 0.25, 0.2, 0.1])},
    "dropout": {"dropout_p": 0.4, "rng_state": STATE, "deterministic": True},
}


def draw(*shape: int, dtype: Any = ml_dtypes.bfloat16, seed: int = 0) -> Any:
    return numpy.random.default_rng(seed).standard_normal(shape).astype(dtype)


def require_same(got: Any, want: Any) -> None:
    for packed, separate in zip(got, want, strict=True):
        numpy.testing.assert_array_equal(packed, separate)


def separate(whole: Any, count: int) -> list[Any]:
    return [numpy.ascontiguousarray(whole[..., i, :, :]) for i in range(count)]


@pytest.mark.parametrize("name", OPTIONS)
def test_batch_mode(name: str) -> None:
    options = {**OPTIONS[name], "return_attn_probs": True}
    qkv, q, kv = draw(2, 7, 3, 4, 16), draw(2, 5, 4, 16), draw(2, 7, 2, 2, 16, seed=1)
    require_same(
        aiter_attn.flash_attn_qkvpacked_func(qkv, **options),
        aiter_attn.flash_attn_func(*separate(qkv, 3), **options),
    )
    require_same(
        aiter_attn.flash_attn_kvpacked_func(q, kv, **options),
        aiter_attn.flash_attn_func(q, *separate(kv, 2), **options),
    )


@pytest.mark.parametrize("name", OPTIONS)
def test_varlen_mode(name: str) -> None:
    options = {**OPTIONS[name], "return_attn_probs": True}
    qkv, q, kv = draw(13, 3, 4, 16), draw(8, 4, 16), draw(13, 2, 2, 16, seed=1)
    require_same(
        aiter_attn.flash_attn_varlen_qkvpacked_func(qkv, STARTS_K, 7, **options),
        aiter_attn.flash_attn_varlen_func(*separate(qkv, 3), STARTS_K, STARTS_K, 7, 7, **options),
    )
    require_same(
        aiter_attn.flash_attn_varlen_kvpacked_func(q, kv, STARTS_Q, STARTS_K, 5, 7, **options),
        aiter_attn.flash_attn_varlen_func(q, *separate(kv, 2), STARTS_Q, STARTS_K, 5, 7, **options),
    )


def test_options_by_place_are_those_of_flash_attn() -> None:
    qkv, slopes = draw(1, 6, 3, 4, 16), numpy.float32([0.5, 0.25, 0.2, 0.1])
    by_place = (0.0, 0.3, True, (2, 0), 1.5, slopes, True, True)
    want = aiter_attn.flash_attn_func(*separate(qkv, 3), *by_place)
    require_same(aiter_attn.flash_attn_qkvpacked_func(qkv, *by_place), want)
    kv = numpy.ascontiguousarray(qkv[:, :, 1:])
    require_same(aiter_attn.flash_attn_kvpacked_func(qkv[:, :, 0], kv, *by_place), want)


def test_memory_with_holes_is_read_where_it_is() -> None:
    """As a projection makes it: [batch, seqlen, (heads, 3, head_size)], in a wider buffer."""
    wide = draw(2, 9, 4, 3, 24)
    qkv = wide[:, 1:8, :, :, 8:].swapaxes(2, 3)
    out = aiter_attn.flash_attn_qkvpacked_func(qkv, causal=True)
    want = aiter_attn.flash_attn_func(*separate(qkv, 3), causal=True)
    numpy.testing.assert_array_equal(out, want)


def test_the_packed_array_is_borrowed_once_and_given_back() -> None:
    lent = Standard(draw(2, 5, 3, 2, 8, dtype=numpy.float32), numpy.empty)
    out = aiter_attn.flash_attn_qkvpacked_func(lent)
    assert (len(lent.streams), lent.released) == (1, 1)
    want = aiter_attn.flash_attn_func(*separate(lent.array, 3))
    numpy.testing.assert_array_equal(out.array, want)


def test_nothing_to_compute() -> None:
    assert aiter_attn.flash_attn_qkvpacked_func(draw(0, 5, 3, 2, 8)).shape == (0, 5, 2, 8)
    out = aiter_attn.flash_attn_kvpacked_func(draw(2, 5, 2, 8), draw(2, 0, 2, 2, 8))
    assert not out.any()


def qkvpacked(qkv: Any, **options: Any) -> Any:
    return aiter_attn.flash_attn_qkvpacked_func(qkv, **options)


def kvpacked(kv: Any, **options: Any) -> Any:
    return aiter_attn.flash_attn_kvpacked_func(draw(2, 5, 4, 8), kv, **options)


def varlen(qkv: Any, **options: Any) -> Any:
    return aiter_attn.flash_attn_varlen_qkvpacked_func(qkv, STARTS_K, 7, **options)


WRONG: dict[str, Refusal] = {
    "two parts of three": (
        qkvpacked,
        {"qkv": draw(2, 5, 2, 4, 8)},
        ValueError,
        "qkv: shape (2, 5, 2, 4, 8); allowed: [batch, seqlen, 3, heads, head size]",
    ),
    "parts in the first dimension": (
        kvpacked,
        {"kv": draw(2, 2, 5, 4, 8)},
        ValueError,
        "kv: shape (2, 2, 5, 4, 8); allowed: [batch, seqlen, 2, heads, head size]",
    ),
    "no parts": (
        varlen,
        {"qkv": draw(13, 4, 8)},
        ValueError,
        "qkv: shape (13, 4, 8); allowed: [total tokens, 3, heads, head size]",
    ),
    "a dtype": (
        qkvpacked,
        {"qkv": draw(2, 5, 3, 4, 8, dtype=numpy.float64)},
        TypeError,
        "qkv: dtype float64; allowed: float16, bfloat16, and on the CPU float32",
    ),
    "two dtypes": (
        kvpacked,
        {"kv": draw(2, 7, 2, 2, 8, dtype=numpy.float16)},
        TypeError,
        "k: dtype float16; allowed here: bfloat16, as q has",
    ),
    "columns with holes": (
        qkvpacked,
        {"qkv": draw(2, 5, 3, 4, 16)[..., ::2]},
        ValueError,
        "qkv: strides (960, 192, 64, 16, 2) (in elements); the last must be 1",
    ),
    "a number": (qkvpacked, {"qkv": 3}, TypeError, "qkv: int is no array; allowed: "),
    "two devices": (
        kvpacked,
        {"kv": Exporter(draw(2, 7, 2, 2, 8, dtype=numpy.float16), device=(10, 0))},
        ValueError,
        "kv: on ROCm:0, but q is on CPU; all arrays of a call are on one device",
    ),
    "a device without kernels": (
        qkvpacked,
        {"qkv": Exporter(draw(2, 7, 3, 2, 8, dtype=numpy.float16), device=(2, 0))},
        ValueError,
        "qkv: on CUDA:0; allowed: CPU (host memory) and ROCm (AMD GPUs)",
    ),
    "dropout without random numbers": (
        varlen,
        {"qkv": draw(13, 3, 4, 8), "dropout_p": 0.1},
        ValueError,
        "rng_state: None, but dropout_p is 0.1",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name: str) -> None:
    check_refused(WRONG[name])


@pytest.mark.parametrize(
    "function", [aiter_attn.flash_attn_qkvpacked_func, aiter_attn.flash_attn_kvpacked_func]
)
def test_an_unknown_option(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'block_table'"):
        function(draw(1, 1, 3, 1, 8), block_table=None)
