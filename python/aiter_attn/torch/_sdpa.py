# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""torch's scaled_dot_product_attention: its arguments and meaning, by the operators of attention.
torch.compile traces what is here."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator
from typing import Any, Final

import torch
from torch.nn import functional
from torch.nn.attention.bias import CausalBias, CausalVariant

from aiter_attn._core import reading
from aiter_attn._core.refusals import renamed
from aiter_attn.torch._arguments import check_given_tensors, check_tensors
from aiter_attn.torch._attention import mha_fwd

__all__ = ["NAMES", "scaled_dot_product_attention", "sdpa"]

# torch's arguments by those of mha_fwd.
NAMES: Final = {
    "q": "query",
    "k": "key",
    "v": "value",
    "bias": "attn_mask",
    "softmax_scale": "scale",
    "causal": "is_causal",
}
_LOCK: Final = threading.Lock()
# The function that each sdpa() has replaced; the first is torch's, or another package's.
_WITHIN: Final[list[Any]] = []


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """torch.nn.functional.scaled_dot_product_attention, differentiable by query, key, value and a
    floating-point attn_mask.

    Args:
        query: [..., heads_q, seqlen_q, head_size], or without heads, [..., seqlen_q, head_size].
        key: [..., heads_k, seqlen_k, head_size]
        value: [..., heads_k, seqlen_k, head_size_v]; the dimensions ahead of heads broadcast.
        attn_mask: of a shape that broadcasts to [..., heads_q, seqlen_q, seqlen_k]: bool, True
            where a query sees a key, or numbers that are added to the scores. It becomes an
            elementwise bias of query's dtype. Or one of torch.nn.attention.bias, which needs no
            memory and every kernel of a mask serves.
        dropout_p: the probability, below 1, with which a weight is dropped; by torch's default
            generator on the CPU.
        is_causal: query i sees keys up to i: aligned at the first, where flash_attn_func aligns the
            last. Not beside attn_mask.
        scale: factor of query key^T, above 0; None: 1 / sqrt(head_size).
        enable_gqa: query head h sees key head h // (heads_q // heads_k). False: heads_k is heads_q,
            or 1.

    Returns:
        [..., heads_q, seqlen_q, head_size_v]; a query that sees no key gives 0.

    Raises:
        TypeError, ValueError, UnsupportedError: see aiter_attn.mha_fwd; messages have the names of
            the arguments here.
    """
    check_tensors(query=query, key=key, value=value)
    if not isinstance(attn_mask, CausalBias):
        check_given_tensors(attn_mask=attn_mask)
    causal, shares = reading.flag("is_causal", is_causal), reading.flag("enable_gqa", enable_gqa)
    if causal and attn_mask is not None:
        raise ValueError("attn_mask: given, but is_causal is True; allowed: one of them")
    has_heads = max(query.dim(), key.dim(), value.dim()) > 3
    batch, q, k, v = _by_rows(query, key, value, has_heads)
    _check_heads(q, k, v, shares)
    aligned_last = False
    bias = None
    if isinstance(attn_mask, CausalBias):
        _check_lengths(attn_mask, q, k)
        causal, aligned_last = True, attn_mask.variant is CausalVariant.LOWER_RIGHT
    elif attn_mask is not None:
        mask = attn_mask if has_heads or attn_mask.dim() < 3 else attn_mask.unsqueeze(-3)
        bias = _bias(mask, query.dtype, batch, (q.shape[2], q.shape[1], k.shape[1]))
    options: dict[str, Any] = {"softmax_scale": scale, "dropout_p": dropout_p}
    with renamed(NAMES):
        if causal and not aligned_last and q.shape[1] != k.shape[1]:
            out = _causal(q, k, v, options)
        else:
            out, _ = mha_fwd(q, k, v, bias=bias, causal=causal, **options)
    out = out.transpose(1, 2)
    return out.reshape(*batch, *out.shape[1 if has_heads else 2 :])


@contextlib.contextmanager
def sdpa() -> Iterator[None]:
    """Within it torch.nn.functional.scaled_dot_product_attention is the one here, in all threads,
    also where modules of torch call it:

        with aiter_attn.torch.sdpa():
            out = model(x)

    A call that is not served is an error that says why, and not another computation. Whoever has
    imported the function by its name keeps torch's.
    """
    with _LOCK:
        _WITHIN.append(functional.scaled_dot_product_attention)
        functional.scaled_dot_product_attention = scaled_dot_product_attention
    try:
        yield
    finally:
        with _LOCK:
            replaced = _WITHIN.pop()
            if not _WITHIN:  # nor is another thread
                functional.scaled_dot_product_attention = replaced


def _by_rows(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, has_heads: bool
) -> tuple[Any, ...]:
    """The dimensions ahead of the heads, and query, key and value as [batch, seqlen, heads, head
    size], in their memory where they do not broadcast."""
    for name, array in (("query", query), ("key", key), ("value", value)):
        if array.dim() < 2:
            raise ValueError(
                f"{name}: shape {tuple(array.shape)}; allowed: [..., heads, seqlen, head size], or "
                "[..., seqlen, head size]"
            )
    arrays = [query, key, value]
    if not has_heads:
        arrays = [array.unsqueeze(-3) for array in arrays]
    try:
        batch = torch.broadcast_shapes(*(array.shape[:-3] for array in arrays))
    except RuntimeError:
        raise ValueError(
            f"key, value: shapes {tuple(key.shape)}, {tuple(value.shape)}, where query has "
            f"{tuple(query.shape)}; allowed: dimensions ahead of the heads that broadcast"
        ) from None
    rows = []
    for array in arrays:
        whole = array.expand(*batch, *_last(array))
        rows.append(whole.reshape(math.prod(batch), *_last(array)).transpose(1, 2))
    return batch, *rows


def _last(array: torch.Tensor) -> tuple[int, ...]:
    return (*(1,) * (3 - array.dim()), *array.shape[-3:])


def _check_heads(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, shares: bool) -> None:
    """Raises ValueError for other heads than torch takes; mha_fwd does for those that do not
    divide."""
    heads_q, heads_k = q.shape[2], k.shape[2]
    if v.shape[2] != heads_k:
        raise ValueError(f"value: {v.shape[2]} heads, but key has {heads_k}; allowed: the same")
    if heads_k not in (1, heads_q) and not shares:
        raise ValueError(
            f"key: {heads_k} heads, but query has {heads_q}; allowed: as many, or 1; query heads "
            "share those of keys with enable_gqa=True"
        )


def _check_lengths(mask: CausalBias, q: torch.Tensor, k: torch.Tensor) -> None:
    lengths = q.shape[1], k.shape[1]
    if (mask.seq_len_q, mask.seq_len_kv) != lengths:
        raise ValueError(
            f"attn_mask: for {mask.seq_len_q} queries and {mask.seq_len_kv} keys; allowed here: "
            f"{lengths[0]} and {lengths[1]}"
        )


def _causal(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, options: dict[str, Any]
) -> torch.Tensor:
    """Aligned at the first query and key: in the square that both have, and with all keys for the
    queries behind it. No query sees the keys behind it."""
    most = min(q.shape[1], k.shape[1])
    out, _ = mha_fwd(q[:, :most], k[:, :most], v[:, :most], causal=True, **options)
    if q.shape[1] == most:
        return out
    return torch.cat([out, mha_fwd(q[:, most:], k, v, **options)[0]], 1)


def _bias(
    mask: torch.Tensor, dtype: torch.dtype, batch: Any, scores: tuple[int, int, int]
) -> torch.Tensor:
    """As mha_fwd takes it: [batch or 1, heads or 1, seqlen_q or 1, seqlen_k]. scores: heads,
    seqlen_q, seqlen_k."""
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise TypeError(f"attn_mask: dtype {mask.dtype}; allowed: torch.bool, {dtype}")
    whole = (*batch, *scores)
    sizes = (*(1,) * (len(whole) - mask.dim()), *mask.shape)
    if len(sizes) > len(whole) or any(
        size not in (1, most) for size, most in zip(sizes, whole, strict=True)
    ):
        raise ValueError(
            f"attn_mask: shape {tuple(mask.shape)}; allowed: shapes that broadcast to {whole} "
            "[..., heads, seqlen_q, seqlen_k]"
        )
    *ahead, heads, queries, _ = sizes
    if math.prod(ahead) != 1:
        ahead = list(batch)
    mask = mask.expand(*ahead, heads, queries, scores[2])
    mask = mask.reshape(math.prod(ahead), heads, queries, scores[2])
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    seen = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return seen.masked_fill(mask.logical_not(), -torch.inf)
