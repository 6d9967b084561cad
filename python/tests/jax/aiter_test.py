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


@pytest.mark.parametrize("compiled", [False, True])
def test_greatest_lengths_are_found(compiled: bool) -> None:
    q, k, v = Q[0], K[0], V[0]

    def call(q_starts: Any, k_starts: Any) -> Any:
        return flash_attn_varlen(q, k, v, q_starts, k_starts, causal=True)[0]

    got = (jax.jit(call) if compiled else call)(*STARTS)
    want = aiter_attn.mha_varlen_fwd(q, k, v, *STARTS, 5, 6, causal=True)[0]
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("given", ["both", "q", "kv"])
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"window_size": (3, 1)}], ids=str)
@pytest.mark.parametrize("slopes", [None, (4,), (2, 4)], ids=str)
def test_sequences_in_the_first_rows(given: str, options: Any, slopes: Any) -> None:
    """Each by itself, and nothing of the rows behind it; in gradients, too."""
    lengths_q = [4, 9] if given != "kv" else [9, 9]
    lengths_k = [6, 3] if given != "q" else [11, 11]
    starts = {
        "cu_seqlens_q": np.cumsum([0, *lengths_q], dtype=np.int32) if given != "kv" else None,
        "cu_seqlens_kv": np.cumsum([0, *lengths_k], dtype=np.int32) if given != "q" else None,
    }
    slopes = None if slopes is None else abs(draw(8, *slopes))
    weights = draw(9, *Q.shape)

    def ours(q: Any, k: Any, v: Any) -> Any:
        out, lse = flash_attn_func(
            q, k, v, alibi_slopes=slopes, return_lse=True, **options, **starts
        )
        return (out * weights).sum(), (out, lse)

    def each(q: Any, k: Any, v: Any) -> Any:
        total, results = 0.0, []
        for i, (rows, keys) in enumerate(zip(lengths_q, lengths_k, strict=True)):
            own = None if slopes is None else slopes if slopes.ndim == 1 else slopes[i]
            out, lse, _ = aiter_attn.jax.flash_attn_func(
                q[i : i + 1, :rows], k[i : i + 1, :keys], v[i : i + 1, :keys],
                alibi_slopes=own, return_attn_probs=True, **options,
            )  # fmt: skip
            total += (out * weights[i, :rows]).sum()
            results.append((out[0], lse[0]))
        return total, results

    which = (0, 1, 2)
    got, (out, lse) = jax.jit(jax.grad(ours, which, has_aux=True))(Q, K, V)
    want, results = jax.grad(each, which, has_aux=True)(Q, K, V)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    for i, (of_entry, of_lse) in enumerate(results):
        rows = lengths_q[i]
        np.testing.assert_allclose(out[i, :rows], of_entry, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(lse[i, :, :rows], of_lse, rtol=1e-6, atol=1e-6)
        assert not np.asarray(out[i, rows:]).any()
        assert np.isneginf(lse[i, :, rows:]).all()


@pytest.mark.parametrize("sizes", [(59, 59), (111, 111), (12, 5)], ids=str)
@pytest.mark.parametrize("scale", [None, 0.3])
def test_any_head_size(sizes: tuple[int, int], scale: float | None) -> None:
    q, k = draw(1, 2, 9, 4, sizes[0]), draw(2, 2, 11, 2, sizes[0])
    v, weights = draw(3, 2, 11, 2, sizes[1]), draw(4, 2, 9, 4, sizes[1])

    def of(function: Any) -> Any:
        def loss(*x: Any) -> Any:
            out = function(*x, softmax_scale=scale, causal=True)
            out = out[0] if isinstance(out, tuple) else out
            return (out * weights).sum(), out

        return jax.grad(loss, (0, 1, 2), has_aux=True)

    text = str(jax.make_jaxpr(lambda *x: flash_attn_func(*x))(q, k, v))
    wide = [-(-size // 8) * 8 for size in sizes]
    assert f"f32[2,9,4,{wide[0]}]" in text and f"f32[2,11,2,{wide[1]}]" in text
    got, want = of(flash_attn_func)(q, k, v), of(aiter_attn.jax.flash_attn_func)(q, k, v)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=2e-5)
    (out,) = flash_attn_varlen(q[0], k[0], v[0], *STARTS, softmax_scale=scale)
    want = aiter_attn.mha_varlen_fwd(q[0], k[0], v[0], *STARTS, 5, 6, softmax_scale=scale)[0]
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=2e-5)


def test_a_compiled_program_draws_dropout_for_each_call() -> None:
    def total(v: Any) -> Any:
        out, probs = flash_attn_func(Q, K, v, dropout_p=0.5, return_attn_probs=True)
        return (out * draw(7, *out.shape)).sum(), probs

    program = jax.jit(jax.value_and_grad(total, has_aux=True))
    calls = [program(V) for _ in range(3)]
    kept = [np.asarray(probs) for (_, probs), _ in calls]
    assert not np.array_equal(kept[0], kept[1]) and not np.array_equal(kept[1], kept[2])
    # Linear in v: the backward pass drops what the forward pass dropped. Terms may cancel.
    for (value, _), gradient in calls:
        terms = np.asarray(gradient, np.float64) * V
        np.testing.assert_allclose(terms.sum(), value, rtol=0, atol=1e-5 * np.abs(terms).sum())


def test_dropout_of_sequences_in_the_first_rows() -> None:
    starts = {"cu_seqlens_q": STARTS[0], "cu_seqlens_kv": STARTS[1]}
    out, probs = flash_attn_func(
        0 * Q, K, np.ones((2, 11, 2, 1), np.float32), 0.5, rng_state=(3, 0), return_attn_probs=True,
         **starts,
    )  # fmt: skip
    assert probs.shape == (2, 4, 9, 11)
    for i, (rows, keys) in enumerate(((4, 5), (5, 6))):
        kept = np.asarray(probs[i, :, :rows, :keys]).mean(-1) * 2
        np.testing.assert_allclose(out[i, :rows, :, 0].T, kept, rtol=1e-5)


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
            lambda: flash_attn_func(Q, K, V, bias=draw(4, 9, 11), cu_seqlens_q=STARTS[0]),
            aiter_attn.UnsupportedError,
            "^bias: with cu_seqlens; allowed: one of them",
        ),
        (
            lambda: flash_attn_func(Q, K, V, cu_seqlens_kv=STARTS[1][:2]),
            ValueError,
            r"^cu_seqlens_kv: dtype int32, shape \(2,\); allowed here: int32, \(3,\)",
        ),
        (
            lambda: flash_attn_func(Q, K, V, cu_seqlens_q=np.array([0, 10, 12], np.int32)),
            ValueError,
            r"^cu_seqlens_q: lengths \[10, 2\]; allowed here: 0 to 9",
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
