# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""jax-aiter's functions by their names, in programs on emulated GPUs; against float64."""

from __future__ import annotations

from typing import Any

import aiter_attn.compat.jax_aiter
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.emulation.wheel.wheel_contents import KINDS
from tests.emulator.hip.emulated_hip import Runtime
from tests.support.python.attention import attention, gradients, relative_error

aiter_attn.compat.jax_aiter.install()

from jax_aiter.mha import flash_attn_func, flash_attn_varlen  # noqa: E402

_ROUNDING = {jnp.bfloat16: 2.0**-9, jnp.float16: 2.0**-12}  # half a unit of the last place
LENGTHS = [(19, 19), (0, 5), (33, 47)]


def draw(seed: int, *shape: int, dtype: Any) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def launched(runtime: Runtime) -> set[str]:
    """The kinds of our kernels, all of which were on a stream of XLA's."""
    ours = [launch for launch in runtime.launches if launch.symbol in KINDS]
    assert 0 not in {launch.stream for launch in ours}
    return {KINDS[launch.symbol] for launch in ours}


@pytest.mark.parametrize("dtype", _ROUNDING, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize(("size", "heads_k", "causal"), [(64, 2, False), (59, 1, True)])
def test_results_and_gradients(
    runtime: Runtime, dtype: Any, size: int, heads_k: int, causal: bool
) -> None:
    """Of head size 59 within a program that pads it."""
    arrays = [draw(i, 2, n, h, size, dtype=dtype) for i, (n, h) in
              enumerate([(33, 2), (47, heads_k), (47, heads_k)])]  # fmt: skip

    def loss(q: Any, k: Any, v: Any) -> Any:
        # `core` has no kernels that sum dq in a fixed order, which is the default there.
        out, lse = flash_attn_func(q, k, v, causal=causal, deterministic=False, return_lse=True)
        return (out.astype(jnp.float32) ** 2).sum() / 2, (out, lse)

    got, (out, lse) = jax.jit(jax.grad(loss, (0, 1, 2), has_aux=True))(*arrays)
    assert {"fwd", "bwd_dot_do_o"} <= launched(runtime)
    for b in range(2):
        own = [np.asarray(x[b], np.float64) for x in arrays]
        want, want_lse = attention(*own, causal=causal)
        assert relative_error(out[b], want) < 4 * _ROUNDING[dtype]
        np.testing.assert_allclose(lse[b], want_lse, 1e-4, 1e-4)
        for ours, exact in zip(got, gradients(want, *own, causal=causal), strict=True):
            assert relative_error(ours[b], exact) < 6 * _ROUNDING[dtype]


def test_a_head_size_between_those_of_kernels(runtime: Runtime) -> None:
    q, k, v = (draw(i, 1, 40, 2, 111, dtype=jnp.float16) for i in range(3))
    (out,) = jax.jit(lambda *x: flash_attn_func(*x, window_size=(9, 4)))(q, k, v)
    assert out.shape == q.shape and launched(runtime) == {"fwd"}
    want, _ = attention(q[0], k[0], v[0], window=(9, 4))
    assert relative_error(out[0], want) < 4 * _ROUNDING[jnp.float16]


def test_packed_sequences(runtime: Runtime) -> None:
    """Their greatest lengths are not told; one has no query."""
    starts = [np.cumsum([0, *of], dtype=np.int32) for of in zip(*LENGTHS, strict=True)]
    q = draw(1, starts[0][-1], 2, 64, dtype=jnp.bfloat16)
    k, v = (draw(i, starts[1][-1], 1, 64, dtype=jnp.bfloat16) for i in (2, 3))
    (out,) = jax.jit(lambda *x: flash_attn_varlen(*x, causal=True))(q, k, v, *starts)
    assert launched(runtime) == {"fwd"}
    for i in (0, 2):
        rows, keys = (slice(of[i], of[i + 1]) for of in starts)
        want, _ = attention(q[rows], k[keys], v[keys], causal=True)
        assert relative_error(out[rows], want) < 4 * _ROUNDING[jnp.bfloat16]
