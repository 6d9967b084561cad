# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention whose keys and values, or queries, keys and values, lie beside each other in one array.

The parts are read where they are. All else is as in attention.py, where messages about the numbers
of a part call it q, k or v.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, overload

from aiter_attn._core.adapters import Array, ArrayT
from aiter_attn._core.arrays import parts_of
from aiter_attn._core.call import RngState
from aiter_attn._functions.attention import Keywords, flash_attn_func, flash_attn_varlen_func
from aiter_attn._functions.fronts import by_front

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
]


@overload
def flash_attn_qkvpacked_func(qkv: ArrayT, **options: Unpack[Keywords]) -> ArrayT: ...
@overload
def flash_attn_qkvpacked_func(
    qkv: ArrayT, *, return_attn_probs: Literal[True], **options: Unpack[Keywords]
) -> tuple[ArrayT, Any, Any]: ...
@overload
def flash_attn_qkvpacked_func(
    qkv: ArrayT, *by_place: Any, return_attn_probs: bool = ..., **options: Unpack[Keywords]
) -> Any: ...
@by_front
def flash_attn_qkvpacked_func(
    qkv: ArrayT,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Array | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    rng_state: RngState | None = None,
    sink: Array | None = None,
) -> ArrayT | tuple[ArrayT, Any, Any]:
    """flash_attn_func of qkv's parts, with the arguments of flash-attn's
    flash_attn_qkvpacked_func.

    Args:
        qkv: [batch, seqlen, 3, heads, head_size]: q, k and v are its three entries of dimension 2.
        The others: see flash_attn_func.

    Returns:
        As flash_attn_func.

    Raises:
        TypeError, ValueError, UnsupportedError, DriverError: see attention.py.
    """
    options = dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic
    return flash_attn_func(  # type: ignore[no-any-return]
        *parts_of("qkv", qkv, 3), *options, return_attn_probs, rng_state=rng_state, sink=sink
    )


@overload
def flash_attn_kvpacked_func(q: ArrayT, kv: Array, **options: Unpack[Keywords]) -> ArrayT: ...
@overload
def flash_attn_kvpacked_func(
    q: ArrayT, kv: Array, *, return_attn_probs: Literal[True], **options: Unpack[Keywords]
) -> tuple[ArrayT, Any, Any]: ...
@overload
def flash_attn_kvpacked_func(
    q: ArrayT, kv: Array, *by_place: Any, return_attn_probs: bool = ..., **options: Unpack[Keywords]
) -> Any: ...
@by_front
def flash_attn_kvpacked_func(
    q: ArrayT,
    kv: Array,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Array | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    rng_state: RngState | None = None,
    sink: Array | None = None,
) -> ArrayT | tuple[ArrayT, Any, Any]:
    """flash_attn_func of q and kv's parts, with the arguments of flash-attn's
    flash_attn_kvpacked_func.

    Args:
        q: [batch, seqlen_q, heads_q, head_size]
        kv: [batch, seqlen_k, 2, heads_k, head_size]: k and v are its two entries of dimension 2.
        The others: see flash_attn_func.

    Returns:
        As flash_attn_func.

    Raises:
        TypeError, ValueError, UnsupportedError, DriverError: see attention.py.
    """
    options = dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic
    return flash_attn_func(  # type: ignore[no-any-return]
        q, *parts_of("kv", kv, 2), *options, return_attn_probs, rng_state=rng_state, sink=sink
    )


@overload
def flash_attn_varlen_qkvpacked_func(
    qkv: ArrayT, cu_seqlens: Array, max_seqlen: SupportsIndex, **options: Unpack[Keywords]
) -> ArrayT: ...
@overload
def flash_attn_varlen_qkvpacked_func(
    qkv: ArrayT,
    cu_seqlens: Array,
    max_seqlen: SupportsIndex,
    *,
    return_attn_probs: Literal[True],
    **options: Unpack[Keywords],
) -> tuple[ArrayT, Any, Any]: ...
@overload
def flash_attn_varlen_qkvpacked_func(
    qkv: ArrayT,
    cu_seqlens: Array,
    max_seqlen: SupportsIndex,
    *by_place: Any,
    return_attn_probs: bool = ...,
    **options: Unpack[Keywords],
) -> Any: ...
@by_front
def flash_attn_varlen_qkvpacked_func(
    qkv: ArrayT,
    cu_seqlens: Array,
    max_seqlen: SupportsIndex,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Array | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    rng_state: RngState | None = None,
    sink: Array | None = None,
) -> ArrayT | tuple[ArrayT, Any, Any]:
    """flash_attn_varlen_func of qkv's parts, with the arguments of flash-attn's
    flash_attn_varlen_qkvpacked_func.

    Args:
        qkv: [total, 3, heads, head_size]: q, k and v are its three entries of dimension 1.
        cu_seqlens: [batch + 1], int32: where each sequence begins, and last total. It is
            cu_seqlens_q and cu_seqlens_k.
        max_seqlen: the greatest length of a sequence.
        The others: see flash_attn_varlen_func.

    Returns:
        As flash_attn_varlen_func.

    Raises:
        TypeError, ValueError, UnsupportedError, DriverError: see attention.py.
    """
    q, k, v = parts_of("qkv", qkv, 3, is_varlen=True)
    sequences = cu_seqlens, cu_seqlens, max_seqlen, max_seqlen
    options = dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic
    return flash_attn_varlen_func(  # type: ignore[no-any-return]
        q, k, v, *sequences, *options, return_attn_probs, rng_state=rng_state, sink=sink
    )


@overload
def flash_attn_varlen_kvpacked_func(
    q: ArrayT,
    kv: Array,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array,
    max_seqlen_q: SupportsIndex,
    max_seqlen_k: SupportsIndex,
    **options: Unpack[Keywords],
) -> ArrayT: ...
@overload
def flash_attn_varlen_kvpacked_func(
    q: ArrayT,
    kv: Array,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array,
    max_seqlen_q: SupportsIndex,
    max_seqlen_k: SupportsIndex,
    *,
    return_attn_probs: Literal[True],
    **options: Unpack[Keywords],
) -> tuple[ArrayT, Any, Any]: ...
@overload
def flash_attn_varlen_kvpacked_func(
    q: ArrayT,
    kv: Array,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array,
    max_seqlen_q: SupportsIndex,
    max_seqlen_k: SupportsIndex,
    *by_place: Any,
    return_attn_probs: bool = ...,
    **options: Unpack[Keywords],
) -> Any: ...
@by_front
def flash_attn_varlen_kvpacked_func(
    q: ArrayT,
    kv: Array,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array,
    max_seqlen_q: SupportsIndex,
    max_seqlen_k: SupportsIndex,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Array | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    rng_state: RngState | None = None,
    sink: Array | None = None,
) -> ArrayT | tuple[ArrayT, Any, Any]:
    """flash_attn_varlen_func of q and kv's parts, with the arguments of flash-attn's
    flash_attn_varlen_kvpacked_func.

    Args:
        q: [total_q, heads_q, head_size]
        kv: [total_k, 2, heads_k, head_size]: k and v are its two entries of dimension 1.
        The others: see flash_attn_varlen_func.

    Returns:
        As flash_attn_varlen_func.

    Raises:
        TypeError, ValueError, UnsupportedError, DriverError: see attention.py.
    """
    k, v = parts_of("kv", kv, 2, is_varlen=True)
    sequences = cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k
    options = dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic
    return flash_attn_varlen_func(  # type: ignore[no-any-return]
        q, k, v, *sequences, *options, return_attn_probs, rng_state=rng_state, sink=sink
    )
