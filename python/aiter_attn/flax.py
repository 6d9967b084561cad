# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention for flax's modules, of nnx and of linen: with the arguments of their
dot_product_attention.

    from aiter_attn.flax import dot_product_attention
    nnx.MultiHeadAttention(..., attention_fn=dot_product_attention)
    linen.MultiHeadDotProductAttention(..., attention_fn=dot_product_attention)

A mask that is not is_causal becomes a bias: on an AMD GPU that takes a variant set with kernels for
one (docs/jax.md). Where flax's function gives a query that sees no key the mean of the values, this
gives 0.
"""

from __future__ import annotations

import math
from typing import Any, Final

import jax
import jax.numpy as jnp

from aiter_attn._core import reading
from aiter_attn._core.errors import UnsupportedError
from aiter_attn._core.refusals import renamed
from aiter_attn.jax._scores import added, attend_from_first

__all__ = ["dot_product_attention"]


def dot_product_attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    bias: jax.Array | None = None,
    mask: jax.Array | None = None,
    broadcast_dropout: bool = True,
    dropout_rng: Any = None,
    dropout_rate: float = 0.0,
    deterministic: bool = False,
    dtype: Any = None,
    precision: Any = None,
    module: Any = None,
    is_causal: bool = False,
    *,
    sink: jax.Array | None = None,
) -> jax.Array:
    """Softmax of (query key^T / sqrt(head_size) + bias) over the keys that the mask leaves, times
    value.

    Args:
        query: [batch..., seqlen_q, heads_q, head_size]
        key: [batch..., seqlen_k, heads_k, head_size]; heads_k divides heads_q.
        value: [batch..., seqlen_k, heads_k, head_size_v]
        bias: an array that broadcasts to [batch..., heads_q, seqlen_q, seqlen_k]; differentiable.
        mask: of the same shapes, bool or a number: where it is 0 a query does not see the key.
        dropout_rate: the probability, below 1, with which a weight is dropped where deterministic
            is False; those that stay are divided by 1 - dropout_rate. dropout_rng, a key of
            jax.random, says which.
        broadcast_dropout: not looked at: each batch entry drops its own weights.
        dtype: that of the computation; None: the one that jax promotes query, key and value to.
        precision: not looked at: products are summed in float32.
        module: None. There are no weights that a module could sow.
        is_causal: query i sees keys up to i, as in flax: aligned at the first, where
            aiter_attn.jax aligns the last.
        sink: float32 [heads_q]: one more score of every query of a head, of a key whose value is 0;
            differentiable. A query that sees no key gives 0. flax's function has none: modules
            take it by functools.partial(dot_product_attention, sink=...).

    Returns:
        [batch..., seqlen_q, heads_q, head_size_v], dtype as computed.

    Raises:
        TypeError, ValueError, UnsupportedError: see aiter_attn.jax.flash_attn_func.
    """
    del broadcast_dropout, precision
    rate = reading.number("dropout_rate", dropout_rate, "a probability below 1; 0.0: none")
    if reading.flag("deterministic", deterministic):
        rate = 0.0
    if rate != 0.0 and dropout_rng is None:
        raise ValueError(
            f"dropout_rng: None, but dropout_rate is {rate} and deterministic is False; allowed: "
            "a key of jax.random"
        )
    if module is not None:
        raise UnsupportedError(
            f"module: {reading.shown(module)}; fused attention has no weights to sow; pass "
            "sow_weights=False, so that it is None"
        )
    arrays = {"query": query, "key": key, "value": value}
    for name, array in arrays.items():
        if array.ndim < 3 or array.shape[:-3] != query.shape[:-3]:
            raise ValueError(
                f"{name}: shape {array.shape}, where query has {query.shape}; allowed: [batch..., "
                "seqlen, heads, head size], with the batch dimensions of query"
            )
    computed = jnp.result_type(query, key, value) if dtype is None else jnp.dtype(dtype)
    batch = query.shape[:-3]
    q, k, v = (
        x.astype(computed).reshape(math.prod(batch), *x.shape[-3:]) for x in (query, key, value)
    )
    scores = (*batch, q.shape[2], q.shape[1], k.shape[1])
    dropout: list[dict[str, Any]] = [{}, {}]
    if rate != 0.0:
        words = jax.random.bits(dropout_rng, (2, 4), "uint32")
        dropout = [{"dropout_p": rate, "rng_state": state} for state in words]
    right = 0 if reading.flag("is_causal", is_causal) else None
    with renamed(_NAMES):
        out = attend_from_first(
            q, k, v, added(bias, mask, scores, computed), None, right, dropout=dropout, sink=sink
        )
    return out.reshape(*batch, *out.shape[1:])


_NAMES: Final = {"q": "query", "k": "key", "v": "value", "dropout_p": "dropout_rate"}
