# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Numbers of the public functions on the CPU, against float64 at the storage's last place."""

from __future__ import annotations

import math
from typing import Any

import aiter_attn
import ml_dtypes
import numpy
import pytest
from aiter_attn._cli import selftest

DTYPES = {
    "float16": numpy.dtype("float16"),
    "bfloat16": numpy.dtype(ml_dtypes.bfloat16),
    "float32": numpy.dtype("float32"),
}


def draw(dtype: str, *shape: int, seed: int = 0) -> Any:
    return numpy.random.default_rng(seed).standard_normal(shape).astype(DTYPES[dtype])


def wide(array: Any) -> Any:
    return array.astype(numpy.float64)


def expected(q: Any, k: Any, v: Any, **mask: Any) -> tuple[Any, Any]:
    """(out, lse) in batch mode."""
    arguments = {"causal": False, "window": (-1, -1), **mask}
    rows = [
        selftest.reference(
            numpy,
            *(wide(x) for x in row),
            numpy.zeros((*row[0].shape[:2], row[2].shape[2])),
            None,
            **arguments,
        )[:2]
        for row in zip(q, k, v, strict=True)
    ]
    return numpy.stack([row[0] for row in rows]), numpy.stack([row[1] for row in rows])


def assert_close(got: Any, want: Any, dtype: str) -> None:
    assert got.dtype == DTYPES[dtype]
    assert got.shape == want.shape
    limit = 8.0 if dtype == "float32" else 1.0
    assert selftest.ulp_error(numpy, wide(got), want, dtype) <= limit


@pytest.mark.parametrize("case", selftest.CASES, ids=lambda c: f"{c.dtype} {c.name}")
def test_selftest_case(case: selftest.Case) -> None:
    (row,) = selftest.run([case])
    assert not row.skipped
    assert row.passed, row


@pytest.mark.parametrize("dtype", DTYPES)
def test_flash_attn_func(dtype: str) -> None:
    q, k, v = draw(dtype, 2, 9, 4, 16), draw(dtype, 2, 11, 2, 16), draw(dtype, 2, 11, 2, 24)
    want, want_lse = expected(q, k, v)
    assert_close(aiter_attn.flash_attn_func(q, k, v), want, dtype)
    out, lse, probs = aiter_attn.flash_attn_func(q, k, v, return_attn_probs=True)
    assert_close(out, want, dtype)
    assert_close(lse, want_lse, "float32")
    assert probs.shape == (0,)
    assert probs.dtype == q.dtype


def test_arguments_are_flash_attns_in_its_order() -> None:
    q, k, v = (draw("float32", 1, 5, 2, 8, seed=i) for i in range(3))
    by_name = aiter_attn.flash_attn_func(
        q, k, v, dropout_p=0.0, softmax_scale=0.5, causal=True, window_size=(2, -1), softcap=0.0,
        alibi_slopes=None, deterministic=True, return_attn_probs=False,
    )  # fmt: skip
    by_place = aiter_attn.flash_attn_func(q, k, v, 0.0, 0.5, True, (2, -1), 0.0, None, True, False)
    numpy.testing.assert_array_equal(by_name, by_place)
    starts = numpy.array([0, 5], numpy.int32)
    rows = [x[0] for x in (q, k, v)]
    varlen = aiter_attn.flash_attn_varlen_func(
        *rows, starts, starts, 5, 5, 0.0, 0.5, True, (2, -1), 0.0, None, True, False, None
    )
    numpy.testing.assert_array_equal(varlen, by_place[0])


def test_softmax_scale_is_one_over_the_root_of_head_size_unless_given() -> None:
    q, k, v = (draw("float32", 1, 6, 1, 16, seed=i) for i in range(3))
    default = aiter_attn.flash_attn_func(q, k, v)
    given = aiter_attn.flash_attn_func(q, k, v, softmax_scale=1 / math.sqrt(16))
    numpy.testing.assert_array_equal(default, given)
    twice = aiter_attn.flash_attn_func(q, k, v, softmax_scale=2 / math.sqrt(16))
    assert_close(twice, expected(2 * q, k, v)[0], "float32")


@pytest.mark.parametrize(
    ("seqlen_q", "seqlen_k", "causal", "window", "seen"),
    [
        # flash-attn's own examples: bottom-right aligned.
        pytest.param(2, 5, True, (-1, -1), ["11110", "11111"], id="wide causal"),
        pytest.param(5, 2, True, (-1, -1), ["00", "00", "00", "10", "11"], id="tall causal"),
        pytest.param(3, 5, False, (1, 1), ["01110", "00111", "00011"], id="window"),
        pytest.param(3, 3, True, (1, 9), ["100", "110", "011"], id="causal sets right to 0"),
        pytest.param(2, 3, False, (-1, 0), ["110", "111"], id="right only"),
        pytest.param(2, 3, False, (0, -1), ["011", "001"], id="left only"),
        pytest.param(2, 2, False, (9, 9), ["11", "11"], id="window wider than all"),
    ],
)
def test_who_sees_whom(
    seqlen_q: int, seqlen_k: int, causal: bool, window: tuple[int, int], seen: list[str]
) -> None:
    q = numpy.zeros((1, seqlen_q, 1, 8), numpy.float32)
    k = numpy.zeros((1, seqlen_k, 1, 8), numpy.float32)
    v = numpy.eye(seqlen_k, dtype=numpy.float32)[None, :, None, :]
    out = aiter_attn.flash_attn_func(q, k, v, causal=causal, window_size=window)
    want = numpy.array([[int(c) for c in row] for row in seen], float)
    want /= numpy.maximum(want.sum(axis=1, keepdims=True), 1)
    numpy.testing.assert_allclose(out[0, :, 0, :], want, rtol=1e-6)


def test_a_row_that_sees_no_key_is_zero_and_its_lse_minus_infinity() -> None:
    q, k, v = draw("float16", 1, 4, 1, 8), draw("float16", 1, 2, 1, 8), draw("float16", 1, 2, 1, 8)
    out, lse = aiter_attn.mha_fwd(q, k, v, causal=True)
    assert not out[0, :2].any()
    assert numpy.isneginf(lse[0, 0, :2]).all()
    assert numpy.isfinite(lse[0, 0, 2:]).all()
    dq, dk, dv = aiter_attn.mha_bwd(out, q, k, v, out, lse, causal=True)
    assert not dq[0, :2].any()
    assert all(numpy.isfinite(wide(g)).all() for g in (dq, dk, dv))


@pytest.mark.parametrize(
    ("batch", "seqlen_q", "seqlen_k"), [(0, 3, 3), (2, 0, 3), (2, 3, 0), (0, 0, 0)]
)
def test_nothing_in_nothing_out(batch: int, seqlen_q: int, seqlen_k: int) -> None:
    q = draw("float16", batch, seqlen_q, 4, 8)
    k, v = draw("float16", batch, seqlen_k, 2, 8), draw("float16", batch, seqlen_k, 2, 8)
    out, lse = aiter_attn.mha_fwd(q, k, v)
    assert out.shape == q.shape
    assert lse.shape == (batch, 4, seqlen_q)
    assert not out.any()
    assert numpy.isneginf(lse).all()
    dq, dk, dv = aiter_attn.mha_bwd(out, q, k, v, out, lse)
    assert (dq.shape, dk.shape, dv.shape) == (q.shape, k.shape, v.shape)
    assert not (dq.any() or dk.any() or dv.any())


def test_varlen_of_no_sequences() -> None:
    q, starts = draw("float16", 0, 2, 8), numpy.zeros(1, numpy.int32)
    out, lse = aiter_attn.mha_varlen_fwd(q, q, q, starts, starts, 0, 0)
    assert out.shape == (0, 2, 8)
    assert lse.shape == (2, 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_varlen_is_batch_by_batch(dtype: str) -> None:
    lengths_q, lengths_k = [3, 0, 7, 1], [5, 2, 7, 0]
    starts_q = numpy.concatenate([[0], numpy.cumsum(lengths_q)]).astype(numpy.int32)
    starts_k = numpy.concatenate([[0], numpy.cumsum(lengths_k)]).astype(numpy.int32)
    q = draw(dtype, starts_q[-1], 4, 16, seed=1)
    k, v = draw(dtype, starts_k[-1], 2, 16, seed=2), draw(dtype, starts_k[-1], 2, 16, seed=3)
    out, lse = aiter_attn.mha_varlen_fwd(q, k, v, starts_q, starts_k, 7, 7, causal=True)
    gradients = aiter_attn.mha_varlen_bwd(
        out, q, k, v, out, lse, starts_q, starts_k, 7, 7, causal=True
    )
    for i in range(len(lengths_q)):
        rows = slice(starts_q[i], starts_q[i + 1])
        keys = slice(starts_k[i], starts_k[i + 1])
        one = [q[None, rows], k[None, keys], v[None, keys]]
        one_out, one_lse = aiter_attn.mha_fwd(*one, causal=True)
        numpy.testing.assert_array_equal(out[rows], one_out[0])
        numpy.testing.assert_array_equal(lse[:, rows], one_lse[0])
        one_gradients = aiter_attn.mha_bwd(one_out, *one, one_out, one_lse, causal=True)
        for whole, part, where in zip(gradients, one_gradients, (rows, keys, keys), strict=True):
            numpy.testing.assert_array_equal(whole[where], part[0])


def test_lengths_may_be_numpy_integers() -> None:
    q, starts = draw("float32", 4, 1, 8), numpy.array([0, 1, 4], numpy.int32)
    longest = numpy.diff(starts).max()
    out = aiter_attn.flash_attn_varlen_func(q, q, q, starts, starts, longest, longest)
    assert out.shape == q.shape
