# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Calls that are made again and again with tensors that lie alike, as in a loop of training or of
decoding: all that does not depend on the tensors' addresses is checked once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import torch

from aiter_attn import _C
from aiter_attn._core.adapters import adapter_of
from aiter_attn._core.adapters.torch import Adapter
from aiter_attn._core.call import Call
from aiter_attn.torch._watched import WATCHER

__all__ = [
    "Prepared",
    "PreparedBackward",
    "calls_of",
    "find",
    "keep",
    "prepare_rows",
    "signature",
    "signature_of_backward",
]

# Calls in a loop have few signatures; lengths that grow without end have many.
_MOST: Final = 1024
_KEPT: dict[Any, Any] = {}
_ADAPTER: Final = cast(Adapter, adapter_of("tensor", torch.empty(0)))
# Private in torch: memory as its compiled code takes it, in half the time of new_empty. By kind of
# device, on the current one; None where torch has none.
_guards: Final = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
_MEMORY: Final = {
    kind: getattr(_guards, f"_empty_strided_{kind}", None) for kind in ("cpu", "cuda")
}


class Prepared:
    """A forward pass of mha_fwd for all tensors of one signature."""

    def __init__(self, call: Call, device: torch.device) -> None:
        self._run = call.prepared().run
        self._out, self._lse = call.attention.out.shape, call.attention.lse.shape
        self._is_on_gpu = device.type == "cuda"

    def __call__(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
        out, lse = q.new_empty(self._out), q.new_empty(self._lse, dtype=torch.float32)
        stream = _ADAPTER.current_stream(q) if self._is_on_gpu else 0
        self._run(q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr(), lse.data_ptr(), stream)
        return out, lse


class PreparedBackward:
    """A backward pass of mha_fwd, without bias, for all tensors of one signature."""

    def __init__(self, call: Call, device: torch.device) -> None:
        prepared, self._workspace_bytes = call.prepared_backward()
        self._run = prepared.run
        wanted = call.attention
        self._dq, self._dk, self._dv = wanted.dq.shape, wanted.dk.shape, wanted.dv.shape
        self._is_on_gpu = device.type == "cuda"

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
            _ADAPTER.current_stream(q) if self._is_on_gpu else 0,
        )
        return dq, dk, dv


def calls_of(
    name: str,
    tensors: int,
    differentiable: Callable[..., Any] | None = None,
    by_class: Sequence[int] = (),
) -> _C.PreparedCalls:
    """The prepared calls of an operation. Arguments: see there."""
    return _C.PreparedCalls(WATCHER, _KEPT, name, tensors, by_class, differentiable)


def prepare_rows(
    kind: type[_C.PreparedRows],
    numbers: dict[str, Any],
    tensors: dict[str, Any],
    given: Sequence[str],
    made: Sequence[tuple[str, tuple[Any, torch.dtype] | None]],
    device: torch.device,
) -> _C.PreparedRows:
    """A pass of a norm or of softmax for all tensors of one signature.

    given: names of the arrays that it gets, made: those that it makes, with their shapes and
    dtypes; None: not made, and None among the results, of which a workspace, the last, is none.
    """
    names = [*given, *(name for name, like in made if like is not None)]
    # A first call that a graph captures has no barrier; others of its signature do.
    has_barrier = device.type == "cuda" and kind is not _C.PreparedNormBackward
    if has_barrier:
        names.append("barrier")
    likes = [
        None if like is None else (tuple(like[0]), _strides(like[0]), like[1]) for _, like in made
    ]
    results = sum(name != "workspace" for name, _ in made)
    functions = {
        "memory": _MEMORY.get(device.type),
        "new": _new,
        "current_device": _ADAPTER.current_device,
        "stream": _ADAPTER.raw_stream,
        "is_capturing": _ADAPTER.is_capturing,
        "barrier": _ADAPTER.barrier if has_barrier else None,
    }
    index = device.index if device.type == "cuda" else -1
    return kind(numbers, tensors, names, likes, results, index, functions)


def _strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Of a dense array, in elements."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _new(like: torch.Tensor, shape: Any, strides: Any, dtype: torch.dtype) -> torch.Tensor:
    return like.new_empty_strided(shape, strides, dtype=dtype)


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


def keep(signature: Any, prepared: Any) -> None:
    if len(_KEPT) >= _MOST:
        _KEPT.clear()
    _KEPT[signature] = prepared
