# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Callers' arguments as operators take them. torch.compile traces what is here."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.autograd import forward_ad

from aiter_attn._core import reading
from aiter_attn._core.adapters.torch import check_layout
from aiter_attn._core.errors import UnsupportedError

__all__ = [
    "cast",
    "check_given_tensors",
    "check_inference",
    "check_no_workspace",
    "check_tensors",
    "size",
]

# Private in torch.
_are_transforms_active: Final[Any] = getattr(torch._C, "_are_functorch_transforms_active", None)


def check_tensors(**given: Any) -> None:
    """Raises TypeError for what is no tensor of one array, UnsupportedError where its derivative
    would be lost: torch asks operators neither in forward mode nor for torch.func."""
    forward_mode = transformed = False
    if not torch.compiler.is_compiling():
        # Private in torch; to ask each tensor takes longer.
        forward_mode = getattr(forward_ad, "_current_level", 0) >= 0
        transformed = _are_transforms_active is not None and _are_transforms_active()
    for name, value in given.items():
        if not isinstance(value, torch.Tensor):
            raise TypeError(
                f"{name}: {reading.shown(value)}; allowed beside torch tensors: a torch tensor; "
                "torch.from_dlpack makes one of another framework's array"
            )
        if value.layout is not torch.strided or value.is_nested:
            check_layout(torch, name, value)
        if forward_mode and forward_ad.unpack_dual(value).tangent is not None:
            raise UnsupportedError(
                f"{name}: has a tangent, but there are no derivatives in forward mode; call "
                "torch.autograd.grad or backward() of the result, or pass it without tangent"
            )
        if transformed and torch._C._functorch.is_gradtrackingtensor(value):
            raise UnsupportedError(
                f"{name}: torch.func differentiates by it (grad, vjp, jacrev, hessian), which the "
                "operators here do not take part in; call torch.autograd.grad or backward() of "
                "the result"
            )


def check_given_tensors(**given: Any) -> None:
    """check_tensors() of those that are not None."""
    check_tensors(**{name: value for name, value in given.items() if value is not None})


def cast(*tensors: Any, like: torch.Tensor | None = None) -> tuple[Any, ...]:
    """The tensors as torch.autocast wants them, where it is on for the device of the first, or of
    `like`."""
    device = (tensors[0] if like is None else like).device.type
    if device == "meta" or not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return tuple(
        x.to(dtype) if x is not None and x.is_floating_point() and x.dtype != torch.float64 else x
        for x in tensors
    )


def size(name: str, value: Any, *allowed: Any) -> Any:
    """An integer, which may be a symbol. allowed: see reading.integer."""
    if isinstance(value, torch.SymInt) or (torch.compiler.is_compiling() and type(value) is int):
        return value
    return reading.integer(name, value, *allowed)


def check_inference(what: str, **tensors: torch.Tensor | None) -> None:
    """Raises UnsupportedError where one requires a gradient, and gradients are recorded."""
    if not torch.is_grad_enabled():
        return
    for name, tensor in tensors.items():
        if tensor is not None and tensor.requires_grad:
            raise UnsupportedError(
                f"{name}: requires_grad is set, but {what} has no backward pass; call under "
                "torch.no_grad() or torch.inference_mode()"
            )


def check_no_workspace(workspace: Any) -> None:
    if workspace is not None:
        raise ValueError(
            "workspace: given; allowed beside torch tensors: None, as torch's allocator keeps it "
            "until its stream is done"
        )
