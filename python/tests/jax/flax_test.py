# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""aiter_attn.flax in flax's modules, against flax's own attention."""

from __future__ import annotations

import os
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import aiter_attn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from aiter_attn.flax import dot_product_attention
from flax import linen, nnx


def draw(seed: int, *shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def close(got: Any, want: Any) -> None:
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5)


def masked(seed: int, *shape: int) -> jax.Array:
    """With at least one key for each query."""
    return (draw(seed, *shape) > 0).at[..., 0].set(True)


@pytest.mark.parametrize("lengths", [(6, 6), (4, 9), (9, 4), (13, 4)], ids=str)
@pytest.mark.parametrize("batch", [(), (2, 3)], ids=str)
@pytest.mark.parametrize("given", ["", "bias", "mask", "narrow mask", "both"])
@pytest.mark.parametrize("is_causal", [False, True])
def test_numbers_and_gradients(
    lengths: tuple[int, int], batch: tuple[int, ...], given: str, is_causal: bool
) -> None:
    seqlen_q, seqlen_k = lengths
    arrays = [draw(1, *batch, seqlen_q, 4, 8), draw(2, *batch, seqlen_k, 4, 8),
              draw(3, *batch, seqlen_k, 4, 8)]  # fmt: skip
    if given in ("bias", "both"):
        arrays.append(draw(4, 4, 1, seqlen_k) if given == "bias" else draw(4, seqlen_q, seqlen_k))
    options: dict[str, Any] = {"is_causal": is_causal}
    if given in ("mask", "both"):
        options["mask"] = masked(5, *batch, 1, seqlen_q, seqlen_k)
    if given == "narrow mask":
        options["mask"] = masked(5, seqlen_k)
    weights = draw(6, *batch, seqlen_q, 4, 8)

    def loss(function: Any, *x: Any) -> Any:
        out = function(*x, **options)
        return (out * weights).sum(), out

    which = tuple(range(len(arrays)))
    got = jax.jit(jax.grad(lambda *x: loss(dot_product_attention, *x), which, has_aux=True))(
        *arrays
    )
    # Its other way gives the weights to a module, and takes any shape.
    full = jnp.zeros((*batch, 4, seqlen_q, seqlen_k))
    causal = jnp.tril(jnp.ones((seqlen_q, seqlen_k), bool))

    def flax(q: Any, k: Any, v: Any, bias: Any = 0.0, mask: Any = True, **_: Any) -> Any:
        seen = (full == 0) & mask & (causal if is_causal else True)
        return nnx.dot_product_attention(q, k, v, bias=full + bias, mask=seen)

    close(got, jax.grad(lambda *x: loss(flax, *x), which, has_aux=True)(*arrays))


def test_key_heads_that_query_heads_share() -> None:
    q, k, v = draw(1, 2, 5, 4, 8), draw(2, 2, 7, 2, 8), draw(3, 2, 7, 2, 8)
    repeated = [jnp.repeat(x, 2, axis=2) for x in (k, v)]
    close(dot_product_attention(q, k, v), nnx.dot_product_attention(q, *repeated))


def test_a_query_that_sees_no_key() -> None:
    q, k = draw(1, 1, 3, 2, 8), draw(2, 1, 5, 2, 8)
    mask = jnp.ones((3, 5), bool).at[1].set(False)
    both = jax.value_and_grad(lambda *x: dot_product_attention(*x, mask=mask).sum(), (0, 1, 2))
    out, gradients = dot_product_attention(q, k, k, mask=mask), both(q, k, k)
    assert not out[0, 1].any()
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(gradients))


@pytest.mark.parametrize("is_causal", [False, True])
def test_a_sink(is_causal: bool) -> None:
    """A key more, whose value is 0, at the end of keys that the mask leaves to all queries."""
    q, k, v = draw(1, 2, 7, 4, 8), draw(2, 2, 5, 4, 8), draw(3, 2, 5, 4, 8)
    sink, weights = draw(4, 4), draw(5, 2, 7, 4, 8)

    def ours(*x: Any) -> Any:
        return (dot_product_attention(*x[:3], sink=x[3], is_causal=is_causal) * weights).sum()

    def theirs(q: Any, k: Any, v: Any, sink: Any) -> Any:
        seen = jnp.tril(jnp.ones((7, 5), bool)) if is_causal else jnp.ones((7, 5), bool)
        seen = jnp.pad(seen, ((0, 0), (0, 1)), constant_values=True)
        bias = jnp.zeros((2, 4, 7, 6)).at[..., 5].set(sink[:, None])
        k, v = (jnp.pad(x, ((0, 0), (0, 1), (0, 0), (0, 0))) for x in (k, v))
        return (nnx.dot_product_attention(q, k, v, bias=bias, mask=seen) * weights).sum()

    which = (0, 1, 2, 3)
    got, want = (jax.value_and_grad(f, which)(q, k, v, sink) for f in (ours, theirs))
    close(got, want)


def test_dtype() -> None:
    q = draw(1, 1, 4, 2, 8)
    assert dot_product_attention(q, q, q, dtype=jnp.bfloat16).dtype == jnp.bfloat16
    half = q.astype(jnp.float16)
    assert dot_product_attention(half, half, half).dtype == jnp.float16


@pytest.mark.parametrize("is_causal", [False, True])
def test_a_key_says_which_weights_are_dropped(is_causal: bool) -> None:
    # Weights of queries alike are alike, and values 1: a result is how many keys stay.
    q, k, v = jnp.zeros((2, 64, 4, 8)), jnp.zeros((2, 32, 4, 8)), jnp.ones((2, 32, 4, 1))

    @jax.jit
    def dropped(key: Any) -> Any:
        return dot_product_attention(
            q, k, v, dropout_rng=key, dropout_rate=0.25, is_causal=is_causal
        )

    first, again, other = (dropped(jax.random.key(i)) for i in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_allclose(first.mean(), 1, rtol=0.05)
    # Each head of each batch entry drops its own, and so do queries behind the square of is_causal.
    rows = np.asarray(first)[..., 0].transpose(0, 2, 1).reshape(-1, 32)
    assert len(np.unique(rows, axis=0)) == len(rows)
    gradient = jax.grad(lambda v: (dot_product_attention(
        q, k, v, dropout_rng=jax.random.key(0), dropout_rate=0.25, is_causal=is_causal
    )).sum())(v)  # fmt: skip
    # The same weights are dropped in both passes.
    np.testing.assert_allclose((gradient * v).sum(), first.sum(), rtol=1e-5)


def module(attention: Any) -> Any:
    return nnx.MultiHeadAttention(
        4, 32, decode=False, attention_fn=attention, rngs=nnx.Rngs(0), keep_rngs=False
    )


def test_a_module_of_nnx_decodes_by_its_cache() -> None:
    x = draw(1, 2, 6, 32)
    ours, theirs = (module(f) for f in (dot_product_attention, nnx.dot_product_attention))
    whole = theirs(x, mask=nnx.make_causal_mask(x[..., 0]))
    close(nnx.jit(lambda m, x: m(x, is_causal=True))(ours, x), whole)
    ours.init_cache(x.shape)
    steps = [ours(x[:, i : i + 1], decode=True) for i in range(6)]
    close(jnp.concatenate(steps, axis=1), whole)


def test_modules_drop_weights() -> None:
    x = draw(1, 2, 6, 32)
    ours = nnx.MultiHeadAttention(
        4, 32, decode=False, attention_fn=dot_product_attention, rngs=nnx.Rngs(0), dropout_rate=0.5
    )
    training = [ours(x, deterministic=False) for _ in range(2)]
    assert (training[0] != training[1]).any()
    np.testing.assert_array_equal(ours(x, deterministic=True), ours(x, deterministic=True))
    layer = linen.MultiHeadDotProductAttention(
        4, attention_fn=dot_product_attention, dropout_rate=0.5, deterministic=False
    )
    keys = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    out, _ = layer.init_with_output(keys, x)
    assert (out != layer.init_with_output(keys | {"dropout": jax.random.key(2)}, x)[0]).any()


def test_a_module_of_linen() -> None:
    x, mask = draw(1, 2, 6, 32), masked(2, 2, 1, 6, 6)
    results = []
    for attention in (dot_product_attention, linen.dot_product_attention):
        layer = linen.MultiHeadDotProductAttention(4, attention_fn=attention)
        weights = layer.init(jax.random.key(0), x)
        results.append(layer.apply(weights, x, mask=mask))
    close(*results)


def test_refusals() -> None:
    q = draw(1, 2, 4, 2, 8)
    with pytest.raises(ValueError, match=r"^dropout_rng: None, but dropout_rate is 0.1"):
        dot_product_attention(q, q, q, dropout_rate=0.1)
    with pytest.raises(ValueError, match=r"^dropout_rate: 1.5"):
        dot_product_attention(q, q, q, dropout_rate=1.5, dropout_rng=jax.random.key(0))
    dot_product_attention(q, q, q, dropout_rate=0.1, deterministic=True)
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^module: .*sow_weights=False"):
        module(dot_product_attention)(draw(1, 2, 6, 32), sow_weights=True)
    for name, shape in (("mask", (3, 4)), ("bias", (2, 2, 2, 4, 4)), ("mask", (3, 1, 4, 4))):
        with pytest.raises(ValueError, match=rf"^{name}: shape .* broadcast to \(2, 2, 4, 4\)"):
            dot_product_attention(q, q, q, **{name: jnp.ones(shape)})
    with pytest.raises(ValueError, match=r"^sink: shape \(3,\); allowed here: \(2,\) \[heads"):
        dot_product_attention(q, q, q, sink=jnp.ones(3))
    with pytest.raises(TypeError, match=r"^sink: dtype bfloat16; allowed: float32"):
        dot_product_attention(q, q, q, sink=jnp.ones(2, jnp.bfloat16))
    with pytest.raises(ValueError, match=r"^key: shape \(4, 2, 8\), where query has"):
        dot_product_attention(q, q[0], q)
    with pytest.raises(ValueError, match=r"^query: shape \(4, 8\)"):
        dot_product_attention(q[0, :, 0], q[0, :, 0], q[0, :, 0])
    with pytest.raises(ValueError, match=r"^key: 3 heads .*, but query has 2; query's must be a"):
        dot_product_attention(q, *(draw(i, 2, 4, 3, 8) for i in (2, 3)))
    with pytest.raises(ValueError, match=r"^value: shape "):
        dot_product_attention(q, q, q[:, :3])
    with pytest.raises(TypeError, match=r"^query: dtype int32"):
        dot_product_attention(q, q, q, dtype=jnp.int32)
