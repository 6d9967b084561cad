# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The attention function of transformers' models."""

from __future__ import annotations

from typing import Any

import torch

from aiter_attn import flash_attn_func, flash_attn_varlen_func
from aiter_attn._core.errors import UnsupportedError
from aiter_attn._core.refusals import renamed
from aiter_attn.transformers._masks import ELSE, Keys, Pattern, Rows, rows_of

__all__ = ["attention"]

# Features that a model may ask of attention and no kernel here has, by transformers' name.
_NOT_THERE = {
    "block_indices": "sparse attention",
    "block_table": "a paged cache",
    "cache": "a paged cache",
    "indices": "sparse attention",
    "k_cache": "a paged cache",
    "output_attentions": "attention weights",
    "position_bias": "biases by position",
    "sinks": "sinks by another name than s_aux",
    "v_cache": "a paged cache",
}


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
    s_aux: torch.Tensor | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Attention as each layer of a model calls it.

    Args:
        query: [batch, heads_q, seqlen_q, head_size]
        key: [batch, heads_k, seqlen_k, head_size]; of a static cache, the room.
        value: [batch, heads_k, seqlen_k, head_size_v]
        attention_mask: what `mask` made, which says all of causal and window, too; or
            [batch, keys so far], 0 where a key is padding; None: no key is.
        sliding_window: how many keys a query sees, its own among them.
        position_ids: [1, seqlen]; where several sequences are packed, each counts up from the same
            first position.
        cu_seq_lens_q, cu_seq_lens_k, max_length_q, max_length_k: the same, told by the caller.
        s_aux: [heads_q], of any dtype: the sink of aiter_attn.flash_attn_func.
        The others: those of aiter_attn.flash_attn_func, by transformers' names.

    Returns:
        (out [batch, seqlen_q, heads_q, head_size_v], None); 0 where a query sees no key, or is
        padding under a causal mask.

    Raises:
        UnsupportedError: attention weights, biases by position, sparse attention, a paged
            cache, or a mask of scores. ValueError: a mask of another batch, or of more keys.
    """
    for name, meaning in _NOT_THERE.items():
        if others.get(name) is not None and others[name] is not False:
            raise UnsupportedError(f"{name}: given, for {meaning}; allowed: None; {ELSE}")
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
    window = (-1, -1)
    if sliding_window is not None:
        window = (sliding_window - 1, 0 if causal else sliding_window - 1)
    seen = _seen(attention_mask, Pattern(causal, window), query, key)
    if seen is not None:
        causal, window = seen.pattern.causal, seen.pattern.window
        key, value = (x[:, :, : seen.shape[1]] for x in (key, value))
    options: dict[str, Any] = {
        "dropout_p": dropout,
        "softmax_scale": scaling,
        "causal": causal,
        "window_size": window,
        "softcap": softcap or 0.0,
        "sink": None if s_aux is None else s_aux.float(),
    }
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    rows = None if seen is None else seen.rows
    if rows is None or rows[0].indices is None:
        if cu_seq_lens_q is not None:
            rows = (
                Rows(None, cu_seq_lens_q, _most(cu_seq_lens_q, max_length_q)),
                Rows(None, cu_seq_lens_k, _most(cu_seq_lens_k, max_length_k)),
            )
        elif rows is None and len(q) == 1 and k.shape[1] == q.shape[1]:
            rows = _by_positions(position_ids)
    with renamed({"sink": "s_aux"}):
        if rows is None:
            return flash_attn_func(q, k, v, **options), None
        return _by_rows(q, k, v, rows, options), None


def _seen(
    mask: torch.Tensor | None, told: Pattern, query: torch.Tensor, key: torch.Tensor
) -> Keys | None:
    if mask is None or isinstance(mask, Keys):
        return mask
    batch, room, seqlen_q = len(query), key.shape[2], query.shape[2]
    if mask.dim() == 4:
        raise UnsupportedError(
            f"attention_mask: shape {tuple(mask.shape)}, a mask of scores; allowed: [batch, keys], "
            f"0 where a key is padding; {ELSE}"
        )
    if mask.dim() != 2 or len(mask) != batch or mask.shape[1] > room:
        raise ValueError(
            f"attention_mask: shape {tuple(mask.shape)}; allowed: [{batch}, up to {room}] [batch, "
            "keys], 0 where a key is padding"
        )
    return Keys.of(mask.bool(), told, seqlen_q)


def _by_rows(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    rows: tuple[Rows, Rows],
    options: dict[str, Any],
) -> torch.Tensor:
    queries, keys = (x.to(q.device) for x in rows)
    packed = (_taken(x, by) for x, by in ((q, queries), (k, keys), (v, keys)))
    lengths = (queries.cu_seqlens, keys.cu_seqlens, queries.max_seqlen, keys.max_seqlen)
    out = flash_attn_varlen_func(*packed, *lengths, **options)
    if queries.indices is not None:
        whole = out.new_zeros((q.shape[0] * q.shape[1], *out.shape[1:]))
        out = whole.index_copy(0, queries.indices, out)
    return out.unflatten(0, q.shape[:2])


def _taken(x: torch.Tensor, rows: Rows) -> torch.Tensor:
    flat = x.flatten(0, 1)
    return flat if rows.indices is None else flat.index_select(0, rows.indices)


def _most(starts: torch.Tensor, told: int | None) -> int:
    return int(starts.diff().max()) if told is None else int(told)


def _by_positions(position_ids: torch.Tensor | None) -> tuple[Rows, Rows] | None:
    """The packed sequences, where there are several: each counts up from the least position."""
    if position_ids is None or position_ids.dim() != 2 or len(position_ids) != 1:
        return None
    positions = position_ids[0]
    begins = positions == positions.min()
    goes_on = positions.diff(prepend=positions[:1] - 1) == 1
    if not (begins[0] & (begins | goes_on).all()) or begins.sum() < 2:
        return None
    starts = begins.nonzero().flatten()
    rows = rows_of(starts.diff(append=starts.new_tensor([len(positions)])))
    return rows, rows
