# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""used_rows.py as an operator, so that compiled code can have it."""

from __future__ import annotations

from typing import Any

import torch

from aiter_attn._core import used_rows
from aiter_attn.torch._arguments import check_given_tensors, check_tensors
from aiter_attn.torch._operators import operator

__all__ = ["split"]


def split(
    q: torch.Tensor,
    k: torch.Tensor,
    sequences: tuple[Any, ...],
    used: tuple[torch.Tensor | None, torch.Tensor | None],
    alibi_slopes: torch.Tensor | None,
) -> tuple[tuple[Any, ...], torch.Tensor | None]:
    """(sequences, alibi_slopes) for the parts of sequences."""
    check_tensors(q=q, k=k)
    check_given_tensors(seqused_q=used[0], seqused_k=used[1], alibi_slopes=alibi_slopes)
    if q.is_cuda:
        raise used_rows.no_used()
    starts_q, starts_k, *longest = sequences
    rows = (x.shape[0] if x.dim() else 0 for x in (q, k))
    parts = varlen_used(starts_q, starts_k, *used, *longest, *rows)
    if alibi_slopes is not None and alibi_slopes.dim() == 2:
        batch = starts_q.numel() - 1
        if alibi_slopes.shape[0] != batch:
            raise ValueError(
                f"alibi_slopes: shape {tuple(alibi_slopes.shape)}; allowed here: [heads_q] or "
                f"[{batch}, heads_q]"
            )
        alibi_slopes = alibi_slopes.repeat_interleave(used_rows.PARTS, 0)
    return (*parts, *longest), alibi_slopes


def _split(
    starts_q: Any, starts_k: Any, used_q: Any, used_k: Any, *numbers: int
) -> tuple[Any, Any]:
    longest_q, longest_k, rows_q, rows_k = numbers
    return used_rows.split(
        used_rows.Side(starts_q, used_q, longest_q, rows_q),
        used_rows.Side(starts_k, used_k, longest_k, rows_k),
    )


def _fake(starts_q: Any, starts_k: Any, *_: Any) -> tuple[Any, Any]:
    made_q, made_k = (
        x.new_empty(used_rows.PARTS * (x.numel() - 1) + 1) for x in (starts_q, starts_k)
    )
    return made_q, made_k


varlen_used = operator(
    "varlen_used(Tensor cu_seqlens_q, Tensor cu_seqlens_k, Tensor? seqused_q, Tensor? seqused_k, "
    "SymInt max_seqlen_q, SymInt max_seqlen_k, SymInt total_q, SymInt total_k) -> "
    "(Tensor parts_q, Tensor parts_k)",
    _split,
    _fake,
)
