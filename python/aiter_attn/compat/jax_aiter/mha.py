# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""jax_aiter.mha. Results are tuples, as they are there."""

from __future__ import annotations

from typing import NoReturn

import jax

from aiter_attn import jax as front
from aiter_attn._errors import UnsupportedError
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
) -> tuple[jax.Array, ...]:
    """aiter_attn.jax.flash_attn_func, with the arguments of jax_aiter.mha.flash_attn_func.

    Args:
        q: [batch, seqlen_q, heads_q, head_size]
        k: [batch, seqlen_k, heads_k, head_size]
        v: [batch, seqlen_k, heads_k, head_size_v]
        bias: [seqlen_q, seqlen_k], dtype of q; its gradient is the sum over batch and heads.
        return_lse: whether the result has lse, [batch, heads_q, seqlen_q], float32.
        return_attn_probs: whether it has probs: [0].
        The others: see aiter_attn.jax.flash_attn_func.

    Returns:
        (out,), then lse and probs, where they are asked for.

    Raises:
        UnsupportedError: dropout, or cu_seqlens. TypeError, ValueError: see
        aiter_attn.jax.flash_attn_func.
    """
    _check_dropout(dropout_p)
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
        softmax_scale=softmax_scale,
        causal=causal,
        window_size=window_size,
        alibi_slopes=alibi_slopes,
        deterministic=deterministic,
        return_attn_probs=True,
        bias=None if bias is None else bias[None, None],
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
) -> tuple[jax.Array, ...]:
    """aiter_attn.jax.flash_attn_varlen_func, with the arguments of jax_aiter.mha.flash_attn_varlen.

    Returns:
        (out,), with return_lse (out, lse): lse [heads_q, total_q], float32.

    Raises:
        UnsupportedError: dropout. TypeError, ValueError: see aiter_attn.jax.flash_attn_varlen_func.
    """
    _check_dropout(dropout_p)
    out, lse, _ = front.flash_attn_varlen_func(
        q,
        k,
        v,
        cu_seqlens_q,
        cu_seqlens_k,
        max_seqlen_q,
        max_seqlen_k,
        softmax_scale=softmax_scale,
        causal=causal,
        window_size=window_size,
        deterministic=deterministic,
        return_attn_probs=True,
    )
    return (out, lse) if return_lse else (out,)


def _check_dropout(dropout_p: float) -> None:
    if dropout_p != 0.0:
        raise UnsupportedError(
            f"dropout_p: {dropout_p}; here allowed: 0.0, as there is no state to draw from. "
            "aiter_attn.jax.flash_attn_func takes dropout_p with rng_state"
        )


def __getattr__(name: str) -> NoReturn:
    raise _names.missing("jax_aiter.mha", name, __all__)
