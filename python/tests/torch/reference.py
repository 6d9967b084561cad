# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention in float64 by torch's own operations, whose gradients are torch's own, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

__all__ = ["attention", "check_gradients", "draw"]


def draw(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator).to(dtype).requires_grad_()


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    slopes: Any = None,
    softcap: float = 0.0,
    bias: Any = None,
    kept: Any = None,
    dropout_p: float = 0.0,
    sink: Any = None,
) -> torch.Tensor:
    """out of [batch, seqlen, heads, head size]. kept: which weights dropout keeps. sink: a score
    more, whose weight is left out."""
    q, k, v = (x.double() for x in (q, k, v))
    group = q.shape[2] // k.shape[2]
    k, v = (x.repeat_interleave(group, 2) for x in (k, v))
    scores = torch.einsum("bihd,bjhd->bhij", q, k) / q.shape[3] ** 0.5
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    i = torch.arange(q.shape[1])[:, None] + k.shape[1] - q.shape[1]
    j = torch.arange(k.shape[1])
    if slopes is not None:
        scores = scores - slopes.double().reshape(-1, q.shape[2], 1, 1) * (i - j).abs()
    if bias is not None:
        scores = scores + bias
    left, right = window
    hidden = torch.zeros(len(i), len(j), dtype=torch.bool)
    if causal or right >= 0:
        hidden |= j > i + (0 if causal else right)
    if left >= 0:
        hidden |= j < i - left
    scores = scores.masked_fill(hidden, -torch.inf)
    if sink is not None:
        column = sink.double()[None, :, None, None].expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, column], 3)
    weights = scores.softmax(3).nan_to_num()[..., : len(j)]
    if kept is not None:
        weights = weights * kept / (1 - dropout_p)
    return torch.einsum("bhij,bjhd->bihd", weights, v)


def check_gradients(
    function: Callable[..., torch.Tensor],
    reference: Callable[..., torch.Tensor],
    inputs: Sequence[torch.Tensor],
    tolerance: float = 2e-5,
) -> None:
    """The result and the gradients of a weighted sum of it, each against the reference."""
    got, want = function(*inputs), reference(*inputs)
    torch.testing.assert_close(got.double(), want, atol=tolerance, rtol=tolerance)
    weights = draw(*want.shape, seed=7).detach().double()
    for out, expected in zip(
        torch.autograd.grad((got.double() * weights).sum(), inputs),
        torch.autograd.grad((want * weights).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(out, expected, atol=tolerance, rtol=tolerance)
