# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""jax arrays in host memory, with the locked jax."""

from __future__ import annotations

from typing import Any

import aiter_attn
import jax
import ml_dtypes
import numpy
import pytest
from aiter_attn.jax import _eager


def draw(seqlen: int, heads: int) -> Any:
    rng = numpy.random.default_rng(seqlen)
    return rng.standard_normal((2, seqlen, heads, 8), dtype=numpy.float32)


def test_jax() -> None:
    arrays = [draw(5, 4), draw(7, 2), draw(7, 2)]
    arrays = [x.astype(ml_dtypes.bfloat16) for x in arrays]
    given = [jax.numpy.asarray(x) for x in arrays]
    out = aiter_attn.flash_attn_func(*given)
    assert isinstance(out, jax.Array)
    numpy.testing.assert_array_equal(numpy.asarray(out), aiter_attn.flash_attn_func(*arrays))
    with pytest.raises(NotImplementedError, match=r"^q: is being traced"):
        jax.jit(aiter_attn.flash_attn_func)(*given)
    with pytest.raises(ValueError, match=r"^out: .* is immutable"):
        aiter_attn.mha_fwd(*given, out=out)


def test_caches() -> None:
    q, k, v, new = draw(2, 4), draw(9, 2), draw(9, 2), draw(2, 2)
    lengths = numpy.array([3, 7], numpy.int32)
    given = [jax.numpy.asarray(x) for x in (q, k, v)]
    for cache_seqlens in (5, jax.numpy.asarray(lengths), lengths):
        out = aiter_attn.flash_attn_with_kvcache(*given, cache_seqlens=cache_seqlens)
        assert isinstance(out, jax.Array)
        want = aiter_attn.flash_attn_with_kvcache(
            q, k, v, cache_seqlens=numpy.broadcast_to(cache_seqlens, 2).astype(numpy.int32)
        )
        numpy.testing.assert_array_equal(numpy.asarray(out), want)
    left_out = numpy.array([1, 4], numpy.int32)
    out = aiter_attn.flash_attn_with_kvcache(
        *given, cache_seqlens=jax.numpy.asarray(lengths), cache_leftpad=jax.numpy.asarray(left_out)
    )
    want = aiter_attn.flash_attn_with_kvcache(
        q, k, v, cache_seqlens=lengths, cache_leftpad=left_out
    )
    numpy.testing.assert_array_equal(numpy.asarray(out), want)
    with pytest.raises(ValueError, match=r"^k_cache: .* is immutable, and k and v are appended"):
        aiter_attn.flash_attn_with_kvcache(*given, new, new, cache_seqlens=5)
    # Appended to numpy's cache, with jax's own attributes.
    more = [jax.numpy.asarray(x) for x in (new, new)]
    out = aiter_attn.flash_attn_with_kvcache(
        given[0], k.copy(), v.copy(), *more, cache_seqlens=jax.numpy.asarray(lengths)
    )
    want = aiter_attn.flash_attn_with_kvcache(q, k, v, new, new, cache_seqlens=lengths)
    numpy.testing.assert_array_equal(numpy.asarray(out), want)
    packed = numpy.stack([draw(5, 2)] * 3, axis=2)
    numpy.testing.assert_array_equal(
        numpy.asarray(aiter_attn.flash_attn_qkvpacked_func(jax.numpy.asarray(packed))),
        aiter_attn.flash_attn_qkvpacked_func(packed),
    )


def test_rows_that_are_not_used() -> None:
    rows = [draw(5, 4)[0], draw(7, 2)[0], draw(7, 2)[1]]
    starts = [numpy.array(x, numpy.int32) for x in ([0, 3, 5], [0, 3, 7])]
    used = {"seqused_q": [2, 2], "seqused_k": [1, 4]}
    arrays = {name: numpy.array(x, numpy.int32) for name, x in used.items()}
    arrays["alibi_slopes"] = numpy.float32([[0.5, 0.25, 1, 2], [1, 2, 0.5, 0.125]])
    out = aiter_attn.flash_attn_varlen_func(
        *map(jax.numpy.asarray, (*rows, *starts)),
        3,
        4,
        **{name: jax.numpy.asarray(x) for name, x in arrays.items()},
    )
    assert isinstance(out, jax.Array)
    want = aiter_attn.flash_attn_varlen_func(*rows, *starts, 3, 4, **arrays)
    numpy.testing.assert_array_equal(numpy.asarray(out), want)
    assert want[1].any()
    assert not want[2].any()


def test_norms() -> None:
    x, gamma = draw(5, 4).astype(ml_dtypes.bfloat16), numpy.ones(8, ml_dtypes.bfloat16)
    given = jax.numpy.asarray(x), jax.numpy.asarray(gamma)
    y, rstd, _ = aiter_attn.rms_norm_fwd(*given)
    want, want_rstd, _ = aiter_attn.rms_norm_fwd(x, gamma)
    # numpy's gradient with jax's arrays: each result is of the framework that it is like.
    dx, dgamma = aiter_attn.rms_norm_bwd(want, given[0], gamma, rstd)
    want_dx, want_dgamma = aiter_attn.rms_norm_bwd(want, x, gamma, want_rstd)
    for array, expected in ((y, want), (rstd, want_rstd), (dx, want_dx)):
        assert isinstance(array, jax.Array)
        numpy.testing.assert_array_equal(numpy.asarray(array), expected)
    assert isinstance(dgamma, numpy.ndarray)
    numpy.testing.assert_array_equal(dgamma, want_dgamma)
    assert isinstance(aiter_attn.softmax_bwd(want, y), jax.Array)


def test_functions_that_run_at_once_have_the_packages_arguments() -> None:
    """The functions that serve jax arrays on GPUs; they run on any device."""
    x, gamma = (jax.numpy.asarray(draw(n, 4)) for n in (5, 4))
    gamma = gamma[0, 0, 0]
    for function, given in (
        (aiter_attn.rms_norm, {"x": x, "gamma": gamma, "residual": x}),
        (aiter_attn.layer_norm, {"x": x, "gamma": gamma, "epsilon": 1e-3}),
        (aiter_attn.softmax, {"x": x, "causal": True}),
        (aiter_attn.flash_attn_func, {"q": x, "k": x, "v": x, "causal": True}),
        (aiter_attn.flash_attn_qkvpacked_func, {"qkv": jax.numpy.stack([x, x, x], 2)}),
        (aiter_attn.flash_attn_kvpacked_func, {"q": x, "kv": jax.numpy.stack([x, x], 2)}),
        (aiter_attn.flash_attn_with_kvcache, {"q": x, "k_cache": x, "v_cache": x, "causal": True}),
    ):
        made = _eager.at_once(function)(**given)
        assert all(isinstance(array, jax.Array) for array in jax.tree.leaves(made))
        arrays = {name: numpy.asarray(a) for name, a in given.items() if isinstance(a, jax.Array)}
        want = function(**{**given, **arrays})
        jax.tree.map(numpy.testing.assert_array_equal, made, want)
    attend = _eager.at_once(aiter_attn.flash_attn_func)
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^q_descale: given with jax arrays"):
        attend(x, x, x, q_descale=1.0)
    with pytest.raises(ValueError, match=r"^kv: shape \(2, 5, 4, 8\); allowed"):
        _eager.at_once(aiter_attn.flash_attn_kvpacked_func)(x, x)
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^k: given .* do not change; call"):
        _eager.at_once(aiter_attn.flash_attn_with_kvcache)(x, x, x, x, x, cache_seqlens=0)
    without = aiter_attn.mha_fwd
    assert _eager.at_once(without) is without
