# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Calls that are made again and again with tensors that lie alike, as in a loop of training or of
decoding: all that does not depend on the tensors' addresses is checked once."""

from __future__ import annotations

from typing import Any, Final

import torch

from aiter_attn._core.call import Call

__all__ = ["Prepared", "PreparedBackward", "find", "keep", "signature", "signature_of_backward"]

# Calls in a loop have few signatures; lengths that grow without end have many.
_MOST: Final = 1024
_KEPT: dict[Any, Any] = {}


class Prepared:
    """A forward pass of mha_fwd for all tensors of one signature."""

    def __init__(self, call: Call, device: torch.device) -> None:
        self._run = call.prepared().run
        self._out, self._lse = call.attention.out.shape, call.attention.lse.shape
        self._device = device

    def __call__(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
        out, lse = q.new_empty(self._out), q.new_empty(self._lse, dtype=torch.float32)
        stream = _stream(self._device)
        self._run(q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr(), lse.data_ptr(), stream)
        return out, lse


class PreparedBackward:
    """A backward pass of mha_fwd, without bias, for all tensors of one signature."""

    def __init__(self, call: Call, device: torch.device) -> None:
        prepared, self._workspace_bytes = call.prepared_backward()
        self._run = prepared.run
        wanted = call.attention
        self._dq, self._dk, self._dv = wanted.dq.shape, wanted.dk.shape, wanted.dv.shape
        self._device = device

    def __call__(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(dq, dk, dv) of q, k, v, out, lse, dout"""
        q = inputs[0]
        dq, dk, dv = q.new_empty(self._dq), q.new_empty(self._dk), q.new_empty(self._dv)
        workspace = None
        if self._workspace_bytes > 0:
            workspace = q.new_empty(self._workspace_bytes, dtype=torch.uint8)
        self._run(
            [x.data_ptr() for x in inputs],
            (dq.data_ptr(), dk.data_ptr(), dv.data_ptr()),
            0 if workspace is None else workspace.data_ptr(),
            self._workspace_bytes,
            _stream(self._device),
        )
        return dq, dk, dv


def _stream(device: torch.device) -> int:
    return torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0


def signature(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, options: tuple[Any, ...]) -> Any:
    """options: numbers, all that is asked for beside the tensors."""
    return (
        q.shape, q.stride(), q.dtype, q.device,
        k.shape, k.stride(), k.dtype, k.device,
        v.shape, v.stride(), v.dtype, v.device,
        options,
    )  # fmt: skip


def signature_of_backward(
    inputs: tuple[torch.Tensor, ...], options: tuple[Any, ...]
) -> tuple[Any, ...]:
    """inputs: q, k, v, out, lse, dout. Unlike any of a forward pass."""
    q, k, v, out, lse, dout = inputs
    return (
        signature(q, k, v, options),
        out.shape, out.stride(), out.dtype, out.device,
        lse.shape, lse.stride(), lse.dtype, lse.device,
        dout.shape, dout.stride(), dout.dtype, dout.device,
    )  # fmt: skip


def find(signature: Any) -> Any:
    return _KEPT.get(signature)


def keep(signature: Any, prepared: Prepared | PreparedBackward) -> None:
    if len(_KEPT) >= _MOST:
        _KEPT.clear()
    _KEPT[signature] = prepared
