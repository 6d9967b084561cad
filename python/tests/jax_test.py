# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""jax arrays in host memory, with the locked jax."""

from __future__ import annotations

from typing import Any

import aiter_attn
import jax
import ml_dtypes
import numpy
import pytest


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
