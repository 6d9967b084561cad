# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""flash_attn_interface's passes by their private names: of torch tensors, without autograd."""

from __future__ import annotations

from typing import Any, Final

import torch

import aiter_attn
from aiter_attn._core.errors import UnsupportedError
from aiter_attn.compat.flash_attn import _signed

__all__ = [
    "_flash_attn_backward",
    "_flash_attn_forward",
    "_flash_attn_varlen_backward",
    "_flash_attn_varlen_forward",
]

# Options go as dicts, which no overload takes.
_package: Any = aiter_attn
_Forward = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def _flash_attn_forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float,
    softmax_scale: float,
    causal: bool,
    window_size_left: int,
    window_size_right: int,
    softcap: float,
    alibi_slopes: torch.Tensor | None,
    return_softmax: bool,
) -> _Forward:
    """(out, lse [batch, heads_q, seqlen_q], signs of dropout or [0], rng_state: int64 [2])"""
    window = window_size_left, window_size_right
    options = _options(dropout_p, softmax_scale, causal, window, softcap, alibi_slopes)
    return _forward((q, k, v), (), options, return_softmax)


def _flash_attn_varlen_forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float,
    softmax_scale: float,
    causal: bool,
    window_size_left: int = -1,
    window_size_right: int = -1,
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    return_softmax: bool = False,
    block_table: torch.Tensor | None = None,
    leftpad_k: torch.Tensor | None = None,
    seqused_k: torch.Tensor | None = None,
    zero_tensors: bool = False,
) -> _Forward:
    """As _flash_attn_forward; lse [heads_q, total_q]. Raises UnsupportedError for a block_table,
    leftpad_k or seqused_k."""
    del zero_tensors
    given = {"block_table": block_table, "leftpad_k": leftpad_k, "seqused_k": seqused_k}
    for name, array in given.items():
        if array is not None:
            raise UnsupportedError(
                f"{name}: given; allowed: None; flash_attn_varlen_func takes block_table and "
                "seqused_k, and flash_attn_with_kvcache reads caches"
            )
    window = window_size_left, window_size_right
    options = _options(dropout_p, softmax_scale, causal, window, softcap, alibi_slopes)
    lengths = (cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    return _forward((q, k, v), lengths, options, return_softmax)


def _flash_attn_backward(
    dout: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    softmax_lse: torch.Tensor,
    dq: torch.Tensor | None,
    dk: torch.Tensor | None,
    dv: torch.Tensor | None,
    dropout_p: float,
    softmax_scale: float,
    causal: bool,
    window_size_left: int,
    window_size_right: int,
    softcap: float,
    alibi_slopes: torch.Tensor | None,
    deterministic: bool,
    rng_state: torch.Tensor | None = None,
) -> torch.Tensor:
    """The sums of out * dout, float32 [batch, heads_q, seqlen_q]; writes dq, dk and dv."""
    window = window_size_left, window_size_right
    options = _options(dropout_p, softmax_scale, causal, window, softcap, alibi_slopes)
    options.update(dq=dq, dk=dk, dv=dv, deterministic=deterministic)
    arrays = _detached(dout, q, k, v, out, softmax_lse)
    return _backward(_package.mha_bwd, arrays, (), options, rng_state)


def _flash_attn_varlen_backward(
    dout: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    softmax_lse: torch.Tensor,
    dq: torch.Tensor | None,
    dk: torch.Tensor | None,
    dv: torch.Tensor | None,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float,
    softmax_scale: float,
    causal: bool,
    window_size_left: int,
    window_size_right: int,
    softcap: float,
    alibi_slopes: torch.Tensor | None,
    deterministic: bool,
    rng_state: torch.Tensor | None = None,
    zero_tensors: bool = False,
) -> torch.Tensor:
    """As _flash_attn_backward; the sums are [heads_q, total_q]."""
    del zero_tensors
    window = window_size_left, window_size_right
    options = _options(dropout_p, softmax_scale, causal, window, softcap, alibi_slopes)
    options.update(dq=dq, dk=dk, dv=dv, deterministic=deterministic)
    arrays = _detached(dout, q, k, v, out, softmax_lse)
    lengths = (cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    return _backward(_package.mha_varlen_bwd, arrays, lengths, options, rng_state)


_NAMES: Final = (
    "dropout_p", "softmax_scale", "causal", "window_size", "softcap", "alibi_slopes"
)  # fmt: skip


def _options(*given: Any) -> dict[str, Any]:
    return dict(zip(_NAMES, given, strict=True))


def _detached(*arrays: torch.Tensor) -> list[torch.Tensor]:
    return [array.detach() for array in arrays]


def _state(dropout_p: float, rng_state: torch.Tensor | None) -> dict[str, Any]:
    return {"rng_state": rng_state} if dropout_p > 0.0 else {}


def _forward(
    arrays: tuple[torch.Tensor, ...],
    lengths: tuple[Any, ...],
    options: dict[str, Any],
    with_signs: bool,
) -> _Forward:
    arrays = tuple(_detached(*arrays))
    drawn = torch.randint(2**62, (2,), dtype=torch.int64)  # by torch.manual_seed
    more = _state(options["dropout_p"], drawn)
    if with_signs:
        call = _signed.flash_attn_varlen_func if lengths else _signed.flash_attn_func
        out, lse, signs = call(*arrays, *lengths, **options, **more, return_attn_probs=True)
    else:
        run = _package.mha_varlen_fwd if lengths else _package.mha_fwd
        out, lse = run(*arrays, *lengths, **options, **more)
        signs = out.new_empty(0)
    return out, lse, signs, drawn


def _backward(
    run: Any,
    arrays: list[torch.Tensor],
    lengths: tuple[Any, ...],
    options: dict[str, Any],
    rng_state: torch.Tensor | None,
) -> torch.Tensor:
    run(*arrays, *lengths, **options, **_state(options["dropout_p"], rng_state))
    dout, *_, out, _ = arrays
    return (out.float() * dout.float()).sum(-1).transpose(-1, -2)
