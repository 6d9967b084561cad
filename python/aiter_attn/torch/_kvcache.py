# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention over key-value caches by operators. torch.compile traces what is here."""

from __future__ import annotations

from typing import Any, Final

import torch

from aiter_attn._core import reading
from aiter_attn._core.cache_problems import SPLITS, appending, check_entries
from aiter_attn.torch import _caches
from aiter_attn.torch._arguments import (
    cap,
    cast,
    check_given_tensors,
    check_inference,
    check_no_workspace,
    check_tensors,
    scale,
    size,
    window,
)

__all__ = ["attend_paged", "flash_attn_with_kvcache"]

_WHAT: Final = "attention over a key-value cache"


def flash_attn_with_kvcache(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    k: torch.Tensor | None = None,
    v: torch.Tensor | None = None,
    rotary_cos: torch.Tensor | None = None,
    rotary_sin: torch.Tensor | None = None,
    cache_seqlens: int | torch.Tensor | None = None,
    cache_batch_idx: torch.Tensor | None = None,
    cache_leftpad: torch.Tensor | None = None,
    block_table: torch.Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    alibi_slopes: torch.Tensor | None = None,
    num_splits: int = 0,
    return_softmax_lse: bool = False,
    *,
    workspace: None = None,
) -> Any:
    """aiter_attn.flash_attn_with_kvcache of tensors. There is no backward pass, as in flash-attn:
    a tensor that requires a gradient is an UnsupportedError.

    Args:
        workspace: None: torch's allocator has it.
        The others: see aiter_attn.flash_attn_with_kvcache.

    Returns, raises: see there.
    """
    check_entries(cache_batch_idx, cache_leftpad, block_table)
    appending(k, v, rotary_cos, rotary_sin, cache_seqlens)
    check_no_workspace(workspace)
    more = {"k": k, "v": v, "alibi_slopes": alibi_slopes}
    tables = {"rotary_cos": rotary_cos, "rotary_sin": rotary_sin}
    check_tensors(q=q, k_cache=k_cache, v_cache=v_cache)
    chooses = {"cache_batch_idx": cache_batch_idx, "cache_leftpad": cache_leftpad}
    check_given_tensors(**more, **tables, **chooses, block_table=block_table)
    check_inference(_WHAT, q=q, k_cache=k_cache, v_cache=v_cache, **more, **tables)
    is_array = isinstance(cache_seqlens, torch.Tensor)
    is_number = not is_array and cache_seqlens is not None
    chosen = (
        cache_seqlens if is_array else None,
        size("cache_seqlens", cache_seqlens) if is_number else None,
        cache_batch_idx,
        cache_leftpad,
        block_table,
        size("num_splits", num_splits, *SPLITS),
        *_options(alibi_slopes, softmax_scale, causal, window_size, softcap, return_softmax_lse),
    )
    if k is None:
        out, lse = _caches.mha_fwd_kvcache(*cast(q), k_cache, v_cache, *chosen)
    else:
        _check_no_negative(k_cache=k_cache, v_cache=v_cache)
        q, k, v, rotary_cos, rotary_sin = cast(q, k, v, rotary_cos, rotary_sin)
        interleaved = reading.flag("rotary_interleaved", rotary_interleaved)
        out, lse = _caches.mha_fwd_kvcache_append(
            q, k_cache, v_cache, k, v, rotary_cos, rotary_sin, interleaved, *chosen
        )
    return (out, lse) if return_softmax_lse else out


def _check_no_negative(**caches: torch.Tensor) -> None:
    """Raises ValueError for what torch cannot write in place."""
    for name, cache in caches.items():
        if not torch.compiler.is_compiling() and cache.is_neg():
            raise ValueError(
                f"{name}: its negative bit is set, and k and v are appended in place; pass a "
                "tensor without it: resolve_neg() gives one"
            )


def attend_paged(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    sequences: tuple[Any, ...],
    block_table: torch.Tensor,
    alibi_slopes: torch.Tensor | None,
    softmax_scale: float | None,
    causal: bool,
    window_size: tuple[int, int],
    softcap: float,
    with_lse: bool,
) -> Any:
    """flash_attn_varlen_func with block_table. sequences: its offsets and greatest lengths."""
    check_tensors(q=q, k=k, v=v, block_table=block_table)
    check_given_tensors(alibi_slopes=alibi_slopes)
    check_inference(_WHAT, q=q, k=k, v=v, alibi_slopes=alibi_slopes)
    options = _options(alibi_slopes, softmax_scale, causal, window_size, softcap, with_lse)
    arguments = (*cast(q), k, v, *sequences, block_table, *options)
    out, lse = _caches.mha_varlen_fwd_paged(*arguments)
    return (out, lse, out.new_empty(0)) if with_lse else out


def _options(
    alibi_slopes: Any,
    softmax_scale: Any,
    causal: Any,
    window_size: Any,
    softcap: Any,
    return_lse: Any,
) -> tuple[Any, ...]:
    return (
        alibi_slopes,
        scale(softmax_scale),
        reading.flag("causal", causal),
        *window(window_size),
        cap(softcap),
        reading.flag("return_softmax_lse", return_lse),
    )
