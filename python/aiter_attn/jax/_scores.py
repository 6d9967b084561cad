# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Masks, and windows from the first query and key, by flash_attn_func, which hides by a bias and
aligns windows at the last ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from aiter_attn.jax._attention import flash_attn_func

__all__ = ["added", "attend_from_first"]


def added(bias: Any, mask: Any, scores: tuple[int, ...], dtype: Any) -> jax.Array | None:
    """bias, and -inf where the mask hides a key, as flash_attn_func takes it: [batch or 1, heads or
    1, seqlen_q or 1, seqlen_k]. Both broadcast to scores: [batch..., heads, seqlen_q, seqlen_k]."""
    if bias is not None:
        bias = _with_four("bias", bias, scores).astype(dtype)
    if mask is None:
        return bias
    seen = _with_four("mask", mask, scores) != 0
    return jnp.where(seen, jnp.zeros((), dtype) if bias is None else bias, -jnp.inf).astype(dtype)


def attend_from_first(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    bias: jax.Array | None,
    left: int | None,
    right: int | None,
    with_lse: bool = False,
    dropout: Sequence[Mapping[str, Any]] = ({}, {}),
    **more: Any,
) -> Any:
    """flash_attn_func where query i sees keys from i - left to i + right: the first query and key
    are aligned, not the last. None: no bound.

    Args:
        bias: as added() gives it.
        dropout: dropout_p and rng_state of the two calls that there may be.
        more: other arguments of flash_attn_func.

    Returns:
        out; with_lse (out, lse). Queries that see no key have 0 and -inf.
    """
    # The kernels take a bound of as many keys as there are for none, as flash-attn does. Queries
    # behind the keys have none to the right.
    queries, keys = q.shape[1], k.shape[1]
    most = queries if right is None else min(queries, keys)
    of_first = None if bias is None else bias[:, :, : most if bias.shape[2] > 1 else 1]
    more["return_attn_probs"] = with_lse
    parts = [_part(q[:, :most], k, v, of_first, left, right, **dropout[0], **more)]
    if queries > most:
        of_rest = bias if bias is None or bias.shape[2] == 1 else bias[:, :, most:]
        behind = None if left is None else left - most
        parts.append(_part(q[:, most:], k, v, of_rest, behind, None, **dropout[1], **more))
    outs, lses = zip(*parts, strict=True)
    out = jnp.concatenate(outs, axis=1) if len(outs) > 1 else outs[0]
    if not with_lse:
        return out
    return out, jnp.concatenate(lses, axis=2)


def _part(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    bias: jax.Array | None,
    left: int | None,
    right: int | None,
    **more: Any,
) -> tuple[jax.Array, jax.Array]:
    """(out, lse) of one call; lse is empty where it is not asked for. left may be below 0."""
    queries, keys = q.shape[1], k.shape[1]
    # Without the keys that no query sees, and the last queries, which may see no key, the bounds
    # from the last are no less than 0.
    keys = keys if right is None else min(keys, queries + right)
    seeing = queries if left is None else max(0, min(queries, keys + left))
    shift = keys - seeing
    causal = right is not None and right == shift
    window = (
        -1 if left is None else left + shift,
        -1 if right is None or causal else right - shift,
    )
    if bias is not None:
        bias = bias[:, :, : seeing if bias.shape[2] > 1 else 1, :keys]
    behind = queries - seeing
    out = jnp.zeros((q.shape[0], 0, q.shape[2], v.shape[3]), q.dtype)
    lse = jnp.zeros((q.shape[0], q.shape[2], 0), jnp.float32)
    if seeing > 0 or behind == 0:
        result = flash_attn_func(
            q[:, :seeing], k[:, :keys], v[:, :keys],
            causal=causal, window_size=window, bias=bias, **more,
        )  # fmt: skip
        out, lse = result[:2] if isinstance(result, tuple) else (result, lse)
    if behind == 0:
        return out, lse
    return (
        jnp.pad(out, ((0, 0), (0, behind), (0, 0), (0, 0))),
        jnp.pad(lse, ((0, 0), (0, 0), (0, behind)), constant_values=-jnp.inf),
    )


def _with_four(name: str, array: Any, scores: tuple[int, ...]) -> jax.Array:
    array = jnp.asarray(array)
    try:
        fits = jnp.broadcast_shapes(array.shape, scores) == scores
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name}: shape {array.shape}; allowed: shapes that broadcast to {scores} "
            "[batch..., heads, seqlen_q, seqlen_k]"
        )
    array = array.reshape((1,) * (len(scores) - array.ndim) + array.shape)
    *batch, heads, queries, _ = array.shape
    if math.prod(batch) != 1:
        batch = list(scores[:-3])
        array = jnp.broadcast_to(array, (*batch, *array.shape[-3:]))
    array = array.reshape(math.prod(batch), *array.shape[-3:])
    return jnp.broadcast_to(array, (len(array), heads, queries, scores[-1]))
