# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Calls that are made again and again with tensors that lie alike, as in a loop of training or of
decoding: what does not depend on the tensors' addresses is checked once."""

from __future__ import annotations

from typing import Any, Final

import torch

from aiter_attn._call import Call

__all__ = ["Prepared", "find", "keep", "signature"]

# Calls in a loop have few signatures; lengths that grow without end have many.
_MOST: Final = 1024
_KEPT: dict[Any, Prepared] = {}


class Prepared:
    """A forward pass of mha_fwd for all tensors of one signature."""

    def __init__(self, call: Call, device: torch.device) -> None:
        self._run = call.prepared().run
        self._out, self._lse = call.attention.out.shape, call.attention.lse.shape
        self._device = device if device.type == "cuda" else None

    def __call__(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
        out, lse = q.new_empty(self._out), q.new_empty(self._lse, dtype=torch.float32)
        stream = 0
        if self._device is not None:
            stream = torch.cuda.current_stream(self._device).cuda_stream
        self._run(q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr(), lse.data_ptr(), stream)
        return out, lse


def signature(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, options: tuple[Any, ...]) -> Any:
    """options: numbers, all that is asked for beside the tensors."""
    return (
        q.shape, q.stride(), q.dtype, q.device,
        k.shape, k.stride(), k.dtype, k.device,
        v.shape, v.stride(), v.dtype, v.device,
        options,
    )  # fmt: skip


def find(signature: Any) -> Prepared | None:
    return _KEPT.get(signature)


def keep(signature: Any, prepared: Prepared) -> None:
    if len(_KEPT) >= _MOST:
        _KEPT.clear()
    _KEPT[signature] = prepared
