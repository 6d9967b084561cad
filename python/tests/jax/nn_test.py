# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""aiter_attn.jax.dot_product_attention against jax.nn's own, on the CPU."""

from __future__ import annotations

import inspect
import os
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import aiter_attn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from aiter_attn.jax import dot_product_attention

THEIRS = jax.nn.dot_product_attention


def draw(seed: int, *shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def close(got: Any, want: Any) -> None:
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=3e-5)


def seen(lengths: tuple[int, int], options: dict[str, Any]) -> np.ndarray:
    """[batch, heads_q, seqlen_q, seqlen_k] of 2 and 4: what a query sees, by the definition."""
    queries, keys = lengths
    i, j = np.arange(queries)[:, None], np.arange(keys)
    window = options.get("local_window_size")
    left, right = (window, window) if isinstance(window, int) else window or (keys, keys + queries)
    left = queries + keys if window is None else left
    sees = (j >= i - left) & (j <= i + right)
    if options.get("is_causal"):
        sees &= j <= i
    whole = np.broadcast_to(sees, (2, 4, queries, keys))
    if "mask" in options:
        whole = whole & np.asarray(options["mask"])
    if "key_value_seq_lengths" in options:
        whole = whole & (j < np.asarray(options["key_value_seq_lengths"])[:, None, None, None])
    if "query_seq_lengths" in options:
        whole = whole & (i < np.asarray(options["query_seq_lengths"])[:, None, None, None])
    return whole


def of_key_lengths(*numbers: int) -> dict[str, Any]:
    return {"key_value_seq_lengths": jnp.asarray(numbers, jnp.int32)}


def of_query_lengths(*numbers: int) -> dict[str, Any]:
    return {"query_seq_lengths": jnp.asarray(numbers, jnp.int32)}


MASKS = {"full": (2, 4), "narrow": (1, 1), "of heads": (1, 4), "of batch entries": (2, 1)}
CASES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "scale": {"scale": 0.3},
    "causal": {"is_causal": True},
    "window": {"local_window_size": (3, 2)},
    "a window of one number": {"local_window_size": 1},
    "no window but itself": {"local_window_size": (0, 0)},
    "a wide window": {"local_window_size": (50, 50)},
    "causal in a window": {"is_causal": True, "local_window_size": (2, 5)},
    "lengths of keys": of_key_lengths(3, 1),
    "lengths of queries": of_query_lengths(4, 0),
    "lengths": {**of_key_lengths(4, 2), **of_query_lengths(1, 3), "is_causal": True},
    "lengths in a window": {**of_key_lengths(4, 2), "local_window_size": (2, 1)},
}


@pytest.mark.parametrize(
    ("lengths", "heads_k"), [((6, 6), 4), ((4, 9), 2), ((9, 4), 1), ((13, 5), 4)], ids=str
)
@pytest.mark.parametrize("name", CASES)
def test_numbers_and_gradients(lengths: tuple[int, int], heads_k: int, name: str) -> None:
    compare(lengths, heads_k, CASES[name], None)


@pytest.mark.parametrize(("lengths", "heads_k"), [((6, 6), 2), ((4, 9), 4), ((9, 4), 2)], ids=str)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("bias", [None, (2, 4), (1, 1)], ids=str)
@pytest.mark.parametrize(
    "more",
    [{}, {"is_causal": True}, {"local_window_size": (3, 3), **of_key_lengths(4, 3)}],
    ids=str,
)
def test_masks_and_biases(
    lengths: tuple[int, int], heads_k: int, mask: str, bias: Any, more: dict[str, Any]
) -> None:
    drawn = (draw(7, *MASKS[mask], *lengths) > 0.3).at[..., 0].set(True)
    compare(lengths, heads_k, {"mask": drawn, **more}, bias)


def compare(
    lengths: tuple[int, int], heads_k: int, options: dict[str, Any], bias: tuple[int, int] | None
) -> None:
    """Values, residuals and gradients; where no key is seen, 0."""
    queries, keys = lengths
    arrays = [draw(1, 2, queries, 4, 8), draw(2, 2, keys, heads_k, 8), draw(3, 2, keys, heads_k, 8)]
    if bias is not None:
        arrays.append(draw(4, *bias, queries, keys))
    some = seen(lengths, options).any(-1)
    rows = some.transpose(0, 2, 1)
    weights = draw(6, 2, queries, 4, 8) * rows[..., None]

    def loss(function: Any) -> Any:
        def of(*x: Any) -> Any:
            out, lse = function(*x, **options, return_residual=True)
            return (out * weights).sum() + lse.sum(), (out, lse)

        return jax.grad(of, tuple(range(len(arrays))), has_aux=True)

    got, (out, lse) = jax.jit(loss(dot_product_attention))(*arrays)
    want, (want_out, want_lse) = loss(THEIRS)(*arrays)
    assert not np.asarray(out)[~rows].any()
    assert np.isneginf(np.asarray(lse)[~rows]).all()
    close((got, out), (want, jnp.where(rows[..., None], want_out, 0)))
    close(jnp.where(rows, lse, 0), jnp.where(rows, want_lse, 0))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_half_precision(dtype: Any) -> None:
    q, k, v, bias = (
        draw(i, *s) for i, s in enumerate(((2, 6, 4, 8), (2, 7, 2, 8), (2, 7, 2, 8), (1, 4, 6, 7)))
    )
    given = [x.astype(dtype) for x in (q, k, v)]
    for function in (dot_product_attention, THEIRS):
        out, lse = function(*given, bias, is_causal=True, return_residual=True)
        assert (out.dtype, lse.dtype) == (dtype, dtype)
        want, want_lse = THEIRS(q, k, v, bias, is_causal=True, return_residual=True)
        np.testing.assert_allclose(out.astype("float32"), want, rtol=0.03, atol=0.03)
        np.testing.assert_allclose(lse.astype("float32"), want_lse, rtol=0.03, atol=0.03)


def test_without_batch() -> None:
    q, k, v = draw(1, 6, 4, 8), draw(2, 7, 2, 8), draw(3, 7, 2, 8)
    mask, bias = draw(4, 4, 6, 7).at[..., 0].set(1) > 0, draw(5, 4, 6, 7)
    for more in ({}, {"mask": mask, "bias": bias}, {"mask": mask[:1]}):
        got = dot_product_attention(q, k, v, return_residual=True, **more)
        close(got, THEIRS(q, k, v, return_residual=True, **more))


def test_transformations() -> None:
    q, k, v = draw(1, 3, 2, 6, 4, 8), draw(2, 3, 2, 7, 2, 8), draw(3, 3, 2, 7, 2, 8)
    lengths = jnp.asarray([[3, 7], [1, 2], [4, 4]], jnp.int32)

    def of(function: Any) -> Any:
        return lambda q, k, v, n: function(q, k, v, is_causal=True, key_value_seq_lengths=n)

    got, want = (jax.vmap(of(f))(q, k, v, lengths) for f in (dot_product_attention, THEIRS))
    close(got, want)
    one = (q[0], k[0], v[0])
    remat = jax.checkpoint(lambda *x: of(dot_product_attention)(*x, lengths[0]).sum())
    close(jax.grad(remat, (0, 1, 2))(*one),
          jax.grad(lambda *x: of(THEIRS)(*x, lengths[0]).sum(), (0, 1, 2))(*one))  # fmt: skip


def test_a_window_computes_no_more_than_it_sees() -> None:
    """Masks of positions are the kernel's, without a bias; of keys that are never seen, none is
    read."""
    q, k = draw(1, 2, 6, 4, 8), draw(2, 2, 64, 4, 8)
    text = str(jax.make_jaxpr(lambda q, k: dot_product_attention(q, k, k, is_causal=True))(q, k))
    assert "f32[2,6,4,8]" in text
    assert "64,64" not in text
    assert "f32[2,4,6,6]" not in text  # no scores


def test_the_signature_is_jaxs() -> None:
    ours, theirs = (inspect.signature(f).parameters for f in (dot_product_attention, THEIRS))
    missing = [name for name in theirs if name not in ours]
    assert missing == []
    for name, parameter in theirs.items():
        assert ours[name].kind == parameter.kind
        assert ours[name].default == parameter.default


def test_refusals() -> None:
    q = draw(1, 2, 4, 4, 8)
    one = jnp.ones(2, jnp.int32)
    for more, error, message in (
        (
            {"implementation": "cudnn"},
            ValueError,
            "^implementation: 'cudnn'; allowed: None; jax.nn",
        ),
        ({"mask": q[..., :4]}, TypeError, "^mask: dtype float32; allowed: bool"),
        ({"mask": jnp.ones((3, 1, 4, 4), bool)}, ValueError, r"^mask: shape \(3, 1, 4, 4\)"),
        ({"bias": jnp.ones((2, 3, 4, 4))}, ValueError, r"^bias: shape \(2, 3, 4, 4\); allowed: "),
        ({"local_window_size": (-1, 0)}, ValueError, r"^local_window_size: \(-1, 0\); allowed: "),
        ({"local_window_size": (1, 2, 3)}, TypeError, r"^local_window_size: \(1, 2, 3\); allowed"),
        ({"local_window_size": "all"}, TypeError, "^local_window_size: "),
        ({"query_seq_lengths": one.astype(float)}, TypeError, "^query_seq_lengths: dtype float32"),
        ({"key_value_seq_lengths": one[:1]}, ValueError, r"^key_value_seq_lengths: shape \(1,\)"),
        ({"scale": "big"}, TypeError, "^scale: 'big'; allowed: a number"),
        ({"is_causal": 2}, TypeError, "^is_causal: 2; allowed: True or False"),
        ({"return_residual": "yes"}, TypeError, "^return_residual: 'yes'; allowed: True or False"),
    ):
        with pytest.raises(error, match=message):
            dot_product_attention(q, q, q, **more)
    with pytest.raises(TypeError, match=r"^scale: a traced array; allowed: a number"):
        jax.jit(lambda s: dot_product_attention(q, q, q, scale=s))(0.5)
    with pytest.raises(ValueError, match=r"^key: shape \(4, 4, 8\); allowed: \[batch, seqlen"):
        dot_product_attention(q, q[0], q)
    with pytest.raises(ValueError, match=r"^query: shape \(8,\)"):
        dot_product_attention(q[0, 0, 0], q, q)
    with pytest.raises(ValueError, match=r"^key: 3 heads .* but query has 4"):
        dot_product_attention(q, q[:, :, :3], q[:, :, :3])
    with pytest.raises(TypeError, match=r"^value: dtype bfloat16"):
        dot_product_attention(q, q, q.astype(jnp.bfloat16))
    whole = jnp.ones((2, 4, 4, 8), jnp.int32)
    with pytest.raises(TypeError, match=r"^query: dtype int32"):
        dot_product_attention(whole, whole, whole)
    with pytest.raises(aiter_attn.UnsupportedError, match="second derivative"):
        jax.hessian(lambda q: dot_product_attention(q, q, q).sum())(q)
