# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention for Hugging Face diffusers.

    import aiter_attn.diffusers
    aiter_attn.diffusers.register()
    pipeline.transformer.set_attention_backend("aiter_attn")

A call that is not served is an error that says why; diffusers' backend "native" serves it. Written
for diffusers 0.42; its list of backends came with 0.35.
"""

from __future__ import annotations

from typing import Any

import torch

from aiter_attn._core.errors import UnsupportedError
from aiter_attn.torch import mha_fwd, scaled_dot_product_attention

try:
    from diffusers.models.attention_dispatch import AttentionBackendName, _AttentionBackendRegistry
except ImportError as error:
    import diffusers

    raise ImportError(
        f"diffusers {diffusers.__version__} has no list of attention backends that this package "
        "knows; allowed: 0.35 or newer, tried with 0.42. Without it, "
        "`with aiter_attn.torch.sdpa():` serves diffusers' calls of torch's attention"
    ) from error

__all__ = ["attention", "register"]


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    _parallel_config: Any = None,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """A backend of diffusers' dispatch_attention_fn, differentiable.

    Args:
        query: [batch, seqlen_q, heads_q, head_size]
        key: [batch, seqlen_k, heads_k, head_size]
        value: [batch, seqlen_k, heads_k, head_size_v]
        attn_mask: as torch's scaled_dot_product_attention takes it, of a shape that broadcasts to
            [batch, heads_q, seqlen_q, seqlen_k]. It becomes an elementwise bias.
        dropout_p, is_causal, scale, enable_gqa: as aiter_attn.torch.scaled_dot_product_attention
            has them.
        return_lse: also return the log-sum-exp, float32 [batch, seqlen_q, heads_q]; without
            attn_mask.

    Returns:
        [batch, seqlen_q, heads_q, head_size_v], or a tuple of it and the log-sum-exp.

    Raises:
        TypeError, ValueError, UnsupportedError: see aiter_attn.mha_fwd, and for context
            parallelism.
    """
    if _parallel_config is not None:
        raise UnsupportedError(
            "parallel_config: given; this backend computes whole sequences on one GPU. Use a "
            "backend of diffusers that has context parallelism, such as native"
        )
    if return_lse:
        return _with_lse(query, key, value, attn_mask, dropout_p, is_causal, scale)
    out = scaled_dot_product_attention(
        query.transpose(1, 2),
        key.transpose(1, 2),
        value.transpose(1, 2),
        attn_mask,
        dropout_p,
        is_causal,
        scale,
        enable_gqa,
    )
    return out.transpose(1, 2)


def _with_lse(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    if attn_mask is not None:
        raise UnsupportedError("return_lse: True, but attn_mask is given; allowed: without a mask")
    if is_causal and query.shape[1] != key.shape[1]:
        raise UnsupportedError(
            f"return_lse: True, but is_causal is True and query has {query.shape[1]} rows, key "
            f"{key.shape[1]}; allowed: as many"
        )
    out, lse = mha_fwd(
        query, key, value, dropout_p=dropout_p, softmax_scale=scale, causal=is_causal
    )
    return out, lse.transpose(1, 2)


def register(name: str = "aiter_attn") -> None:
    """Makes `name` an attention backend of diffusers, for a model's set_attention_backend(name) and
    for the context manager attention_backend(name).

    Raises ValueError for a name that is not of lower case, as diffusers lowers names, or that is
    one of diffusers' own.
    """
    if name != name.lower() or not name.isidentifier():
        raise ValueError(f"name: {name!r}; allowed: a name of lower-case letters, digits and _")
    if _AttentionBackendRegistry._backends.get(name) is attention:
        return
    if name in {member.value for member in AttentionBackendName}:
        raise ValueError(
            f"name: {name!r} is a backend of diffusers; allowed: another, such as 'aiter_attn'"
        )
    _AttentionBackendRegistry.register(_member(name))(attention)


def _member(name: str) -> AttentionBackendName:
    """A further member of diffusers' enum, which all of its functions look names up in."""
    member = str.__new__(AttentionBackendName, name)
    member._name_, member._value_ = name.upper(), name
    AttentionBackendName._member_names_.append(member._name_)
    AttentionBackendName._member_map_[member._name_] = member
    AttentionBackendName._value2member_map_[name] = member
    return member
