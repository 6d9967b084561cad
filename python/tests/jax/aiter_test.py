# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""aiter_attn.compat.jax_aiter, called as jax-aiter is."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import aiter_attn
import aiter_attn.compat.jax_aiter
import aiter_attn.jax
import jax
import numpy as np
import pytest

aiter_attn.compat.jax_aiter.install()

import jax_aiter  # noqa: E402
from jax_aiter.mha import flash_attn_func, flash_attn_varlen  # noqa: E402
from jax_aiter.rmsnorm import rms_norm, rms_norm_with_add  # noqa: E402


def draw(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


Q, K, V = draw(1, 2, 9, 4, 16), draw(2, 2, 11, 2, 16), draw(3, 2, 11, 2, 16)
STARTS = np.array([0, 4, 9], np.int32), np.array([0, 5, 11], np.int32)


def test_attention_by_place_as_there() -> None:
    bias = draw(4, 9, 11)
    (out,) = flash_attn_func(Q, K, V, 0.0, 0.3, True, (5, -1), bias)
    expected = aiter_attn.mha_fwd(
        Q, K, V, softmax_scale=0.3, causal=True, window_size=(5, -1), bias=bias[None, None]
    )
    np.testing.assert_array_equal(out, expected[0])
    out, lse, probs = jax.jit(
        lambda *x: flash_attn_func(*x, return_lse=True, return_attn_probs=True)
    )(Q, K, V)
    for got, want in zip((out, lse), aiter_attn.mha_fwd(Q, K, V), strict=True):
        np.testing.assert_array_equal(got, want)
    assert probs.shape == (0,)
    # A bias of two dimensions serves all batch entries and heads.
    gradient = jax.grad(lambda b: flash_attn_func(Q, K, V, bias=b)[0].sum())(bias)
    assert gradient.shape == bias.shape


def test_modules_are_named_as_there() -> None:
    from jax_aiter.mha import mha
    from jax_aiter.rmsnorm.rmsnorm import rms_norm as norm

    assert mha.flash_attn_func is flash_attn_func and norm is rms_norm


def test_slopes_get_no_gradient() -> None:
    slopes = np.full(4, 0.5, np.float32)
    gradient = jax.grad(lambda s: flash_attn_func(Q, K, V, alibi_slopes=s)[0].sum())(slopes)
    np.testing.assert_array_equal(gradient, np.zeros(4, np.float32))


def test_dropout_is_drawn_or_told() -> None:
    first, second = (np.asarray(flash_attn_func(Q, K, V, 0.5)[0]) for _ in range(2))
    assert (first != second).any()
    told = {"rng_state": (3, 0)}
    (got,) = flash_attn_func(Q, K, V, 0.5, **told)
    np.testing.assert_array_equal(got, aiter_attn.jax.flash_attn_func(Q, K, V, 0.5, **told))
    packed = Q[0], K[0], V[0], *STARTS, 5, 6
    (got,) = flash_attn_varlen(*packed, 0.5, **told)
    want = aiter_attn.jax.flash_attn_varlen_func(*packed, 0.5, **told)
    np.testing.assert_array_equal(got, want)
    assert len(flash_attn_varlen(*packed, 0.5)) == 1


def test_packed_sequences() -> None:
    q, k, v = Q[0], K[0], V[0]
    out, lse = flash_attn_varlen(q, k, v, *STARTS, 5, 6, causal=True, return_lse=True)
    want = aiter_attn.mha_varlen_fwd(q, k, v, *STARTS, 5, 6, causal=True)
    for got, expected in zip((out, lse), want, strict=True):
        np.testing.assert_array_equal(got, expected)
    assert len(flash_attn_varlen(q, k, v, *STARTS, 5, 6)) == 1


def test_rms_norm() -> None:
    x, residual, gamma = draw(5, 3, 24), draw(6, 3, 24), draw(7, 24)
    np.testing.assert_array_equal(rms_norm(x, gamma), aiter_attn.rms_norm_fwd(x, gamma)[0])
    y, total = rms_norm_with_add(x, residual, gamma, 1e-3)
    np.testing.assert_array_equal(total, x + residual)
    np.testing.assert_array_equal(y, aiter_attn.rms_norm_fwd(total, gamma, epsilon=1e-3)[0])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: flash_attn_func(Q, K, V, cu_seqlens_q=STARTS[0]),
            aiter_attn.UnsupportedError,
            "^cu_seqlens_q: given; for packed sequences there is flash_attn_varlen",
        ),
        (lambda: flash_attn_func(Q, K, V, bias=Q), ValueError, r"^bias: shape .*\[seqlen_q"),
        (lambda: jax_aiter.gemm, AttributeError, r"^jax_aiter\.gemm: .* it has mha, rmsnorm"),
        (lambda: jax_aiter.mha.mha_fwd, AttributeError, r"^jax_aiter\.mha\.mha_fwd: "),
    ],
)
def test_what_is_not_there_is_refused_by_name(
    call: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()
    with pytest.raises(
        ModuleNotFoundError, match=r"^jax_aiter\.gemm: not in aiter_attn's stand-in"
    ):
        __import__("jax_aiter.gemm")


def test_an_original_that_is_imported_stays() -> None:
    program = """
import sys, types
original = sys.modules["jax_aiter"] = types.ModuleType("jax_aiter")
import aiter_attn.compat.jax_aiter as stand_in
try:
    stand_in.install()
except ImportError as error:
    assert "jax_aiter: imported already" in str(error) and "ahead of the first" in str(error)
    assert sys.modules["jax_aiter"] is original
    assert "jax_aiter.mha" not in sys.modules
else:
    sys.exit(1)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
