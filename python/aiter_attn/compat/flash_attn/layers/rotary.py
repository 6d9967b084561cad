# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""flash_attn.layers.rotary's functions, by torch's own operations."""

from __future__ import annotations

from typing import NoReturn

import torch

from aiter_attn.compat import _names

__all__ = ["apply_rotary_emb", "apply_rotary_emb_func", "apply_rotary_emb_torch"]


def apply_rotary_emb(
    x: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    interleaved: bool = False,
    inplace: bool = False,
    seqlen_offsets: int | torch.Tensor = 0,
    cu_seqlens: torch.Tensor | None = None,
    max_seqlen: int | None = None,
) -> torch.Tensor:
    """x with its first rotary_dim elements rotated by their positions; differentiable by x.

    Args:
        x: [batch, seqlen, heads, head_size], or with cu_seqlens [total, heads, head_size].
        cos, sin: [positions, rotary_dim / 2]
        interleaved: whether elements 2i and 2i + 1 are a pair, rather than i and
            i + rotary_dim / 2.
        inplace: whether x itself is changed.
        seqlen_offsets: the position of each sequence's first token, int or [batch].
        cu_seqlens: [batch + 1], where packed sequences begin. max_seqlen: not needed.
    """
    del max_seqlen
    places = torch.arange(x.shape[0 if cu_seqlens is not None else 1], device=x.device)
    if cu_seqlens is None:
        if isinstance(seqlen_offsets, torch.Tensor):
            seqlen_offsets = seqlen_offsets[:, None]
        places = places + seqlen_offsets
    else:
        sequence = torch.searchsorted(cu_seqlens, places, right=True) - 1
        places = places - cu_seqlens[sequence]
        places = places + (
            seqlen_offsets[sequence] if isinstance(seqlen_offsets, torch.Tensor) else seqlen_offsets
        )
    rotated = apply_rotary_emb_torch(x, cos[places], sin[places], interleaved)
    return x.copy_(rotated) if inplace else rotated


apply_rotary_emb_func = apply_rotary_emb


def apply_rotary_emb_torch(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool = False
) -> torch.Tensor:
    """The same for tables of x's own positions, computed in float32.

    Args:
        x: [..., seqlen, heads, head_size]
        cos, sin: [seqlen, rotary_dim / 2] or [..., seqlen, rotary_dim / 2]
    """
    size = 2 * cos.shape[-1]
    if size > x.shape[-1]:
        raise ValueError(f"cos: shape {tuple(cos.shape)}; allowed: [..., up to {x.shape[-1] // 2}]")
    cos, sin = cos[..., None, :].float(), sin[..., None, :].float()
    turned = x[..., :size].float()
    if interleaved:
        first, second = turned[..., ::2], turned[..., 1::2]
    else:
        first, second = turned.chunk(2, dim=-1)
    pair = first * cos - second * sin, first * sin + second * cos
    turned = torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1)
    return torch.cat([turned.to(x.dtype), x[..., size:]], -1)


def __getattr__(name: str) -> NoReturn:
    raise _names.missing("flash_attn.layers.rotary", name, __all__)
