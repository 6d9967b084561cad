# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention for Hugging Face transformers.

    import aiter_attn.transformers
    aiter_attn.transformers.register()
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="aiter_attn")

Padded batches are computed without their padding, packed ones (cu_seq_lens_q, or position_ids that
begin anew) sequence by sequence, and a static cache as far as it is filled: as transformers does it
for flash_attention_2, whose masks these are.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, flash_attention_mask

from aiter_attn import flash_attn_func, flash_attn_varlen_func
from aiter_attn._errors import UnsupportedError
from aiter_attn.compat.flash_attn.bert_padding import pad_input, unpad_input

__all__ = ["attention", "register"]

# What a model may ask of attention, and nothing here has.
_NOT_THERE = ("cache", "output_attentions", "position_bias", "s_aux")


def register(name: str = "aiter_attn") -> None:
    """Makes attn_implementation=name available to all models."""
    AttentionInterface.register(name, attention)
    AttentionMaskInterface.register(name, flash_attention_mask)


def attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    is_causal: bool | None = None,
    position_ids: torch.Tensor | None = None,
    cu_seq_lens_q: torch.Tensor | None = None,
    cu_seq_lens_k: torch.Tensor | None = None,
    max_length_q: int | None = None,
    max_length_k: int | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """What transformers calls in each attention layer.

    Args:
        query: [batch, heads_q, seqlen_q, head_size]
        key: [batch, heads_k, seqlen_k, head_size]; value likewise. Of a static cache, the room.
        attention_mask: [batch, keys so far], 0 where a key is padding; None: no key is.
        sliding_window: how many keys a query sees, its own among them.
        position_ids: [1, seqlen]; a sequence begins at each 0 where several are packed.
        cu_seq_lens_q, cu_seq_lens_k, max_length_q, max_length_k: the same, told by the caller.
        The others: as aiter_attn.flash_attn_func has them, by transformers' names.

    Returns:
        (out [batch, seqlen_q, heads_q, head_size], None); 0 where a query is padding.

    Raises:
        UnsupportedError: attention weights, sinks, biases by position, or a paged cache.
    """
    for name in _NOT_THERE:
        if others.get(name) is not None and others[name] is not False:
            raise UnsupportedError(
                f"{name}: given; allowed: None, or another attn_implementation, such as eager"
            )
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
    options: dict[str, Any] = {
        "dropout_p": dropout,
        "softmax_scale": scaling,
        "causal": causal,
        "softcap": softcap or 0.0,
    }
    if sliding_window is not None:
        options["window_size"] = (sliding_window - 1, 0 if causal else sliding_window - 1)
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    batch, seqlen = q.shape[:2]
    if attention_mask is not None:
        k, v = (x[:, : attention_mask.shape[1]] for x in (k, v))
        if not attention_mask.all():
            return _padded(q, k, v, attention_mask, options), None
        return flash_attn_func(q, k, v, **options), None
    if cu_seq_lens_q is None and batch == 1 and k.shape[1] == seqlen:
        cu_seq_lens_q, max_length_q = _starts(position_ids)
        cu_seq_lens_k, max_length_k = cu_seq_lens_q, max_length_q
    if cu_seq_lens_q is None:
        return flash_attn_func(q, k, v, **options), None
    lengths: Any = (cu_seq_lens_q, cu_seq_lens_k, max_length_q, max_length_k)
    out = flash_attn_varlen_func(*(x.flatten(0, 1) for x in (q, k, v)), *lengths, **options)
    return out.unflatten(0, (batch, seqlen)), None


def _padded(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, options: dict[str, Any]
) -> torch.Tensor:
    """The queries are the last of the keys' places."""
    batch, seqlen = q.shape[:2]
    tokens, indices, starts_q, most_q, _ = unpad_input(q, mask[:, -seqlen:])
    keys, _, starts_k, most_k, _ = unpad_input(k, mask)
    values = unpad_input(v, mask)[0]
    out = flash_attn_varlen_func(
        tokens, keys, values, starts_q, starts_k, most_q, most_k, **options
    )
    return pad_input(out, indices, batch, seqlen)


def _starts(position_ids: torch.Tensor | None) -> tuple[Any, Any]:
    """(cu_seqlens, the greatest length) where several sequences are packed, else (None, None)."""
    if position_ids is None or position_ids.dim() != 2 or len(position_ids) != 1:
        return None, None
    positions = position_ids[0]
    begins = (positions == 0).nonzero().flatten()
    if len(begins) < 2:
        return None, None
    end = begins.new_tensor([len(positions)])
    starts = torch.cat([begins, end]).to(torch.int32)
    return starts, int(starts.diff().max())
