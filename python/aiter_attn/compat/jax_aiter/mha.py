# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""jax_aiter.mha. Results are tuples, as they are there."""

from __future__ import annotations

import secrets
import sys
from typing import Any

import jax

from aiter_attn import jax as front
from aiter_attn._core.errors import UnsupportedError
from aiter_attn.compat import _names

__all__ = ["flash_attn_func", "flash_attn_varlen"]


def flash_attn_func(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    bias: jax.Array | None = None,
    alibi_slopes: jax.Array | None = None,
    deterministic: bool = True,
    return_lse: bool = False,
    return_attn_probs: bool = False,
    cu_seqlens_q: jax.Array | None = None,
    cu_seqlens_kv: jax.Array | None = None,
    *,
    rng_state: front.RngState | None = None,
) -> tuple[jax.Array, ...]:
    """aiter_attn.jax.flash_attn_func, with the arguments of jax_aiter.mha.flash_attn_func.

    Args:
        q: [batch, seqlen_q, heads_q, head_size]
        k: [batch, seqlen_k, heads_k, head_size]
        v: [batch, seqlen_k, heads_k, head_size_v]
        bias: [seqlen_q, seqlen_k], dtype of q; its gradient is the sum over batch and heads.
        alibi_slopes: float32, [heads_q] or [batch, heads_q]; its gradient is 0.
        rng_state: with dropout, which weights are dropped; None: drawn for each call, which in a
            compiled program is each trace. jax.random.bits(key, (4,), "uint32") is traced.
        return_lse: whether the result has lse, [batch, heads_q, seqlen_q], float32.
        return_attn_probs: whether it has probs: [0], or with dropout those of
            aiter_attn.jax.flash_attn_func.
        The others: see aiter_attn.jax.flash_attn_func.

    Returns:
        (out,), then lse and probs, where they are asked for.

    Raises:
        UnsupportedError: cu_seqlens. TypeError, ValueError: see aiter_attn.jax.flash_attn_func.
    """
    for name, starts in (("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_kv", cu_seqlens_kv)):
        if starts is not None:
            raise UnsupportedError(
                f"{name}: given; for packed sequences there is flash_attn_varlen"
            )
    if bias is not None and bias.ndim != 2:
        raise ValueError(f"bias: shape {bias.shape}; allowed: [seqlen_q, seqlen_k]")
    out, lse, probs = front.flash_attn_func(
        q,
        k,
        v,
        dropout_p,
        softmax_scale=softmax_scale,
        causal=causal,
        window_size=window_size,
        alibi_slopes=None if alibi_slopes is None else jax.lax.stop_gradient(alibi_slopes),
        deterministic=deterministic,
        return_attn_probs=True,
        bias=None if bias is None else bias[None, None],
        rng_state=_drawn(dropout_p, rng_state),
    )
    return (out, *([lse] if return_lse else []), *([probs] if return_attn_probs else []))


def flash_attn_varlen(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    cu_seqlens_q: jax.Array,
    cu_seqlens_k: jax.Array,
    max_seqlen_q: int = 0,
    max_seqlen_k: int = 0,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    deterministic: bool = False,
    return_lse: bool = False,
    *,
    rng_state: front.RngState | None = None,
) -> tuple[jax.Array, ...]:
    """aiter_attn.jax.flash_attn_varlen_func, with the arguments of jax_aiter.mha.flash_attn_varlen.

    Args:
        rng_state: see flash_attn_func.
        The others: see aiter_attn.jax.flash_attn_varlen_func.

    Returns:
        (out,), with return_lse (out, lse): lse [heads_q, total_q], float32.

    Raises:
        TypeError, ValueError: see aiter_attn.jax.flash_attn_varlen_func.
    """
    out, lse, _ = front.flash_attn_varlen_func(
        q,
        k,
        v,
        cu_seqlens_q,
        cu_seqlens_k,
        max_seqlen_q,
        max_seqlen_k,
        dropout_p,
        softmax_scale=softmax_scale,
        causal=causal,
        window_size=window_size,
        deterministic=deterministic,
        return_attn_probs=True,
        rng_state=_drawn(dropout_p, rng_state),
    )
    return (out, lse) if return_lse else (out,)


def _drawn(dropout_p: float, rng_state: Any) -> Any:
    return (secrets.randbits(64), 0) if dropout_p != 0.0 and rng_state is None else rng_state


def __getattr__(name: str) -> Any:
    if name == "mha":  # jax_aiter.mha.mha is a module there
        return sys.modules[__name__]
    raise _names.missing("jax_aiter.mha", name, __all__)
