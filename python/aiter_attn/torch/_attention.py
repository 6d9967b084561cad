# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention, of separate and of packed arrays, by operators. torch.compile traces what is here."""

from __future__ import annotations

from typing import Any

import torch

from aiter_attn._core import cache_problems, fp8_scales, problems, reading, used_rows
from aiter_attn._core.fp8_scales import Scale
from aiter_attn.torch import _fp8, _mha, _tracing
from aiter_attn.torch._arguments import cast, check_no_workspace, check_tensors, options, size
from aiter_attn.torch._kvcache import attend_paged
from aiter_attn.torch._operators import run
from aiter_attn.torch._used import split

__all__ = [
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
    "mha_fwd",
    "mha_varlen_fwd",
]


def flash_attn_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    rng_state: Any = None,
    q_descale: Scale = None,
    k_descale: Scale = None,
    v_descale: Scale = None,
    out_scale: Scale = None,
) -> Any:
    """aiter_attn.flash_attn_func, differentiable by q, k and v where they are not fp8.

    Args:
        rng_state: with dropout (seed, offset), or int64 [2] in host memory or where q is; None:
            drawn from torch's default generator on the CPU.
        The others: see aiter_attn.flash_attn_func.

    Returns, raises: see there. lse and probs of return_attn_probs are not differentiable.
    """
    with_lse = reading.flag("return_attn_probs", return_attn_probs)
    chosen = options(
        dropout_p,
        softmax_scale,
        causal,
        window_size,
        softcap,
        deterministic,
        alibi_slopes,
        rng_state,
    )
    scales = q_descale, k_descale, v_descale, out_scale
    if _fp8.is_fp8(q, scales):
        return _fp8.attend(q, k, v, (), chosen, scales, with_lse)
    return _attend(q, k, v, (), chosen, with_lse)


def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: torch.Tensor | None = None,
    *,
    seqused_q: torch.Tensor | None = None,
    seqused_k: torch.Tensor | None = None,
    rng_state: Any = None,
    workspace: None = None,
    q_descale: Scale = None,
    k_descale: Scale = None,
    v_descale: Scale = None,
    out_scale: Scale = None,
) -> Any:
    """aiter_attn.flash_attn_varlen_func, differentiable by q, k and v, but with block_table or fp8.

    Args:
        rng_state: see flash_attn_func.
        workspace: None: torch's allocator has it.
        The others: see aiter_attn.flash_attn_varlen_func.

    Returns, raises: see there. lse and probs of return_attn_probs are not differentiable.
    """
    with_lse = reading.flag("return_attn_probs", return_attn_probs)
    check_no_workspace(workspace)
    sequences = _sequences(cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    scales = q_descale, k_descale, v_descale, out_scale
    if seqused_q is not None or seqused_k is not None:
        used_rows.check(seqused_q, seqused_k, block_table, scales)
        sequences, alibi_slopes = split(q, k, sequences, (seqused_q, seqused_k), alibi_slopes)
    if block_table is not None:
        cache_problems.check_no_dropout(dropout_p)
        fp8_scales.check_none(scales, "there is no fp8 beside block_table")
        return attend_paged(
            q,
            k,
            v,
            sequences,
            block_table,
            alibi_slopes,
            softmax_scale,
            causal,
            window_size,
            softcap,
            with_lse,
        )
    chosen = options(
        dropout_p,
        softmax_scale,
        causal,
        window_size,
        softcap,
        deterministic,
        alibi_slopes,
        rng_state,
    )
    if _fp8.is_fp8(q, scales):
        return _fp8.attend(q, k, v, sequences, chosen, scales, with_lse)
    return _attend(q, k, v, sequences, chosen, with_lse)


def mha_fwd(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    dropout_p: float = 0.0,
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    deterministic: bool = False,
    rng_state: Any = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """aiter_attn.mha_fwd, differentiable by q, k, v and bias.

    Args:
        deterministic: about the backward pass.
        rng_state: see flash_attn_func.
        The others: see aiter_attn.mha_fwd.

    Returns:
        (out, lse); lse is not differentiable.

    Raises: see aiter_attn.mha_fwd.
    """
    chosen = options(
        dropout_p,
        softmax_scale,
        causal,
        window_size,
        softcap,
        deterministic,
        alibi_slopes,
        rng_state,
    )
    return _forward(q, k, v, bias, (), chosen)[:2]


def mha_varlen_fwd(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    *,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    dropout_p: float = 0.0,
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    deterministic: bool = False,
    rng_state: Any = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """aiter_attn.mha_varlen_fwd, differentiable by q, k, v and bias; see mha_fwd."""
    sequences = _sequences(cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    chosen = options(
        dropout_p,
        softmax_scale,
        causal,
        window_size,
        softcap,
        deterministic,
        alibi_slopes,
        rng_state,
    )
    return _forward(q, k, v, bias, sequences, chosen)[:2]


def flash_attn_qkvpacked_func(qkv: torch.Tensor, *options: Any, **more: Any) -> Any:
    """flash_attn_func of qkv's parts, [batch, seqlen, 3, heads, head_size]; its gradient is one
    tensor, too. See aiter_attn.flash_attn_qkvpacked_func."""
    return flash_attn_func(*_parts("qkv", qkv, 3), *options, **more)


def flash_attn_kvpacked_func(q: torch.Tensor, kv: torch.Tensor, *options: Any, **more: Any) -> Any:
    """flash_attn_func of q and kv's parts, [batch, seqlen_k, 2, heads_k, head_size]. See
    aiter_attn.flash_attn_kvpacked_func."""
    return flash_attn_func(q, *_parts("kv", kv, 2), *options, **more)


def flash_attn_varlen_qkvpacked_func(
    qkv: torch.Tensor, cu_seqlens: torch.Tensor, max_seqlen: int, *options: Any, **more: Any
) -> Any:
    """flash_attn_varlen_func of qkv's parts, [total, 3, heads, head_size]. See
    aiter_attn.flash_attn_varlen_qkvpacked_func."""
    parts = _parts("qkv", qkv, 3, is_varlen=True)
    lengths = (cu_seqlens, cu_seqlens, max_seqlen, max_seqlen)
    arguments: tuple[Any, ...] = (*parts, *lengths, *options)
    return flash_attn_varlen_func(*arguments, **more)


def flash_attn_varlen_kvpacked_func(
    q: torch.Tensor,
    kv: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    *options: Any,
    **more: Any,
) -> Any:
    """flash_attn_varlen_func of q and kv's parts, [total_k, 2, heads_k, head_size]. See
    aiter_attn.flash_attn_varlen_kvpacked_func."""
    parts = _parts("kv", kv, 2, is_varlen=True)
    lengths = (cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    arguments: tuple[Any, ...] = (q, *parts, *lengths, *options)
    return flash_attn_varlen_func(*arguments, **more)


def _parts(name: str, packed: Any, count: int, is_varlen: bool = False) -> Any:
    check_tensors(**{name: packed})
    along = problems.check_packed(name, _tracing.described(packed), count, is_varlen)
    return packed.unbind(along)


def _forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    bias: torch.Tensor | None,
    sequences: tuple[Any, ...],
    chosen: tuple[Any, ...],
) -> tuple[torch.Tensor, torch.Tensor, tuple[Any, ...]]:
    """(out, lse, the operator's arguments)"""
    check_tensors(q=q, k=k, v=v)
    if bias is not None:
        check_tensors(bias=bias)
        (bias,) = cast(bias, like=q)
    arguments = (*cast(q, k, v), *sequences, bias, *chosen)
    forward = _mha.mha_varlen_fwd if sequences else _mha.mha_fwd
    return *run(forward, arguments, (q, k, v, bias, chosen[0])), arguments


def _attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    sequences: tuple[Any, ...],
    chosen: tuple[Any, ...],
    with_lse: bool,
) -> Any:
    """out; with_lse (out, lse, probs)."""
    out, lse, arguments = _forward(q, k, v, None, sequences, chosen)
    if not with_lse:
        return out
    has_dropout = chosen[1] is not None
    if not has_dropout:
        return out, lse, out.new_empty(0)
    mask = _mha.mha_varlen_dropout_mask if sequences else _mha.mha_dropout_mask
    with torch.no_grad():
        return out, lse, mask(*arguments)


def _sequences(
    cu_seqlens_q: Any, cu_seqlens_k: Any, max_seqlen_q: Any, max_seqlen_k: Any
) -> tuple[Any, ...]:
    check_tensors(cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k)
    longest = size("max_seqlen_q", max_seqlen_q), size("max_seqlen_k", max_seqlen_k)
    return cu_seqlens_q, cu_seqlens_k, *longest
