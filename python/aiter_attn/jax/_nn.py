# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention with the arguments of jax.nn.dot_product_attention."""

from __future__ import annotations

from typing import Any, Final

import jax
import jax.numpy as jnp

from aiter_attn._core import reading
from aiter_attn._core.refusals import renamed
from aiter_attn.jax._attention import array_of
from aiter_attn.jax._scores import added, attend_from_first

__all__ = ["dot_product_attention"]

_NAMES: Final = {"q": "query", "k": "key", "v": "value", "softmax_scale": "scale"}


def dot_product_attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    bias: jax.Array | None = None,
    mask: jax.Array | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: jax.Array | None = None,
    key_value_seq_lengths: jax.Array | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: None = None,
    return_residual: bool = False,
) -> Any:
    """jax.nn.dot_product_attention: softmax(scale * query key^T + bias) value, over the keys that a
    query sees.

    A query that sees no key gives 0, where jax's gives the mean of the values. A mask, and lengths
    of keys, become a bias (docs/jax.md).

    Args:
        query: [batch, seqlen_q, heads_q, head_size], or without batch.
        key, value: [batch, seqlen_k, heads_k, head_size]; heads_k divides heads_q. The head size of
            value may be another one.
        bias: an array that broadcasts to [batch, heads_q, seqlen_q, seqlen_k]; rounded to the dtype
            of query, and differentiable.
        mask: bool, of the same shapes: where it is False a query does not see the key.
        scale: a number, not traced; None: 1 / sqrt(head_size).
        is_causal: query i sees keys up to i.
        query_seq_lengths: int32 [batch]: queries behind these many give 0.
        key_value_seq_lengths: int32 [batch]: keys behind these many are not seen.
        local_window_size: (left, right), 0 or more: query i sees keys from i - left to i + right;
            a number stands for both.
        implementation: None. Others are jax.nn's own.
        return_residual: whether the result has lse.

    Returns:
        out, [batch, seqlen_q, heads_q, head_size of value], dtype of query; with return_residual
        (out, lse): lse [batch, seqlen_q, heads_q], dtype of key, the logarithm of the sum of what
        softmax divides by, -inf where a query sees no key, without gradient. Without batch where
        query has none.

    Raises:
        TypeError, ValueError, UnsupportedError: see flash_attn_func.
    """
    if implementation is not None:
        raise ValueError(
            f"implementation: {reading.shown(implementation)}; allowed: None; "
            "jax.nn.dot_product_attention has others"
        )
    has_batch = jnp.ndim(query) != 3
    q, k, v = (
        _with_batch(name, array, has_batch)
        for name, array in (("query", query), ("key", key), ("value", value))
    )
    batch, seqlen_q, heads_q, _ = q.shape
    seqlen_k = k.shape[1]
    seen = _seen(mask, key_value_seq_lengths, batch, seqlen_k)
    scores = batch, heads_q, seqlen_q, seqlen_k
    left, right = _bounds(is_causal, local_window_size)
    number = _scale(scale)
    with renamed(_NAMES):
        out, lse = attend_from_first(
            q, k, v, added(bias, seen, scores, q.dtype), left, right,
            with_lse=True, softmax_scale=number,
        )  # fmt: skip
    if query_seq_lengths is not None:
        lengths = _lengths("query_seq_lengths", query_seq_lengths, batch)
        is_query = jnp.arange(seqlen_q) < lengths[:, None]
        out = jnp.where(is_query[:, :, None, None], out, 0)
        lse = jnp.where(is_query[:, None], lse, -jnp.inf)
    out = out if has_batch else out[0]
    if not reading.flag("return_residual", return_residual):
        return out
    residual = jnp.swapaxes(lse, 1, 2).astype(k.dtype)
    return out, residual if has_batch else residual[0]


def _with_batch(name: str, given: Any, has_batch: bool) -> jax.Array:
    array = array_of(name, given)
    if array.ndim != (4 if has_batch else 3):
        raise ValueError(
            f"{name}: shape {array.shape}; allowed: [batch, seqlen, heads, head_size], or query, "
            "key and value without batch"
        )
    return array if has_batch else array[None]


def _scale(given: Any) -> float | None:
    if isinstance(given, jax.core.Tracer):
        raise TypeError(
            "scale: a traced array; allowed: a number, a constant of the program; multiply query "
            "by the array, and pass 1.0"
        )
    return None if given is None else reading.number("scale", given, "a number, or None")


def _bounds(is_causal: Any, window: Any) -> tuple[int | None, int | None]:
    """The numbers of keys that a query sees to its left and to its right; None: all."""
    left = right = None
    if window is not None:
        allowed = "a number from 0 on, or two (left, right)"
        both = (window, window) if isinstance(window, int) else window
        left, right = reading.pair("local_window_size", both, allowed)
        if left < 0 or right < 0:
            raise ValueError(f"local_window_size: {reading.shown(window)}; allowed: {allowed}")
    return left, 0 if reading.flag("is_causal", is_causal) else right


def _lengths(name: str, given: Any, batch: int) -> jax.Array:
    lengths = array_of(name, given)
    if lengths.dtype != jnp.int32:
        raise TypeError(f"{name}: dtype {lengths.dtype}; allowed: int32")
    if lengths.shape != (batch,):
        raise ValueError(f"{name}: shape {lengths.shape}; allowed here: {(batch,)} [batch]")
    return lengths


def _seen(mask: Any, lengths: Any, batch: int, seqlen_k: int) -> jax.Array | None:
    """The mask, with the lengths of keys."""
    if mask is not None:
        mask = array_of("mask", mask)
        if mask.dtype != jnp.bool_:
            raise TypeError(
                f"mask: dtype {mask.dtype}; allowed: bool, False where a key is hidden; what is "
                "added to scores is bias"
            )
    if lengths is None:
        return mask
    counts = _lengths("key_value_seq_lengths", lengths, batch)
    within = jnp.arange(seqlen_k) < counts[:, None, None, None]
    return within if mask is None else mask & within
