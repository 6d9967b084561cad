# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention by other packages, where they are installed for the same device: to be timed beside
ours."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["Run", "Runs", "Shape", "flash_attn_runs", "torch_runs", "why_no_torch"]

# A function of no arguments that is measured; those of each pass.
Run = Callable[[], object]
Runs = dict[str, Run]


@dataclasses.dataclass(frozen=True)
class Shape:
    """A call in batch mode. causal: aligned at the last query and key."""

    batch: int
    seqlen_q: int
    seqlen_k: int
    heads_q: int
    heads_k: int
    head_size: int
    head_size_v: int
    dtype: str
    causal: bool
    backward: bool


def why_no_torch(device: str) -> str | None:
    """Why the torch of this process has no such device, "cpu" or "cuda:N"; None: it has."""
    try:
        import torch
    except ImportError:
        return "torch is not installed"
    if device != "cpu" and (torch.version.hip is None or not torch.cuda.is_available()):
        return "this torch has no ROCm, or finds no GPU"
    return None


def torch_runs(shape: Shape, device: str) -> Runs | str:
    """Those of scaled_dot_product_attention; a string: why there are none."""
    import torch

    if shape.causal and shape.seqlen_q != shape.seqlen_k:
        return "its causal mask is top-left aligned, ours bottom-right"
    group = {"enable_gqa": True} if shape.heads_q != shape.heads_k else {}
    attend = functools.partial(
        torch.nn.functional.scaled_dot_product_attention, is_causal=shape.causal, **group
    )
    # It takes heads before tokens, by strides.
    q, k, v, dout = (x.transpose(1, 2) for x in _drawn(shape, device))
    return _runs(attend, (q, k, v), dout, shape.backward)


def flash_attn_runs(shape: Shape, device: str) -> Runs | str:
    """Those of flash_attn_func of an installed flash-attn; a string: why there are none."""
    try:
        from flash_attn import flash_attn_func
    except ImportError:
        return "it is not installed"
    attend = functools.partial(flash_attn_func, causal=shape.causal)
    *inputs, dout = _drawn(shape, device)
    return _runs(attend, inputs, dout, shape.backward)


def _drawn(shape: Shape, device: str) -> list[Any]:
    """q, k, v and dout, [batch, tokens, heads, head size]."""
    import torch

    dtype = getattr(torch, shape.dtype)
    return [
        torch.randn(shape.batch, seqlen, heads, size, device=device, dtype=dtype)
        for seqlen, heads, size in (
            (shape.seqlen_q, shape.heads_q, shape.head_size),
            (shape.seqlen_k, shape.heads_k, shape.head_size),
            (shape.seqlen_k, shape.heads_k, shape.head_size_v),
            (shape.seqlen_q, shape.heads_q, shape.head_size_v),
        )
    ]


def _runs(attend: Any, inputs: Sequence[Any], dout: Any, backward: bool) -> Runs:
    import torch

    runs: Runs = {"forward": lambda: attend(*inputs)}
    if backward:
        leaves = [x.detach().requires_grad_() for x in inputs]
        out = attend(*leaves)
        runs["backward"] = lambda: torch.autograd.grad(out, leaves, dout, retain_graph=True)
    return runs
