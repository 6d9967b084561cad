# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Callers' arguments as operators take them. torch.compile traces what is here."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.autograd import forward_ad

from aiter_attn._core import problems, reading
from aiter_attn._core.adapters.torch import check_layout
from aiter_attn._core.errors import UnsupportedError

__all__ = [
    "cap",
    "cast",
    "check_given_tensors",
    "check_inference",
    "check_no_workspace",
    "check_tensors",
    "options",
    "scale",
    "size",
    "window",
]

_GREATEST_DRAWN: Final = 2**62


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


def scale(softmax_scale: Any) -> float | None:
    if softmax_scale is None:
        return None
    return reading.number("softmax_scale", softmax_scale, "a number, or None")


def window(window_size: Any) -> tuple[int, int]:
    allowed = "two integers (left, right), -1: no bound"
    if torch.compiler.is_compiling():
        # operator.index of a tensor is not traced.
        left, right = window_size
        left = left.item() if isinstance(left, torch.Tensor) else left
        return left, right.item() if isinstance(right, torch.Tensor) else right
    left, right = reading.pair("window_size", window_size, allowed)
    # Keys are never that many, and an operator takes 64 bits.
    most = reading.INT32_MAX
    if -1 <= left <= most and -1 <= right <= most:
        return left, right
    return max(-1, min(left, most)), max(-1, min(right, most))


def cap(softcap: Any) -> float:
    return reading.number("softcap", softcap, "a number above 0; 0.0: no cap")


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


def options(
    dropout_p: Any,
    softmax_scale: Any,
    causal: Any,
    window_size: Any,
    softcap: Any,
    deterministic: Any,
    alibi_slopes: torch.Tensor | None,
    rng_state: Any,
) -> tuple[Any, ...]:
    """The last arguments of an operator of attention: _mha.Options, but for bias. torch 2.6 traces
    tuples without names."""
    if alibi_slopes is not None:
        check_tensors(alibi_slopes=alibi_slopes)
    probability = reading.number("dropout_p", dropout_p, "a probability below 1; 0.0: none")
    return (
        alibi_slopes,
        None if probability == 0.0 else _random_state(probability, rng_state),
        probability,
        scale(softmax_scale),
        reading.flag("causal", causal),
        *window(window_size),
        cap(softcap),
        reading.flag("deterministic", deterministic)
        or torch.are_deterministic_algorithms_enabled(),
    )


def _random_state(dropout_p: float, given: Any) -> torch.Tensor:
    """Seed and offset. Drawn in host memory: the library gets them as numbers, without a wait."""
    if given is None:
        return torch.randint(_GREATEST_DRAWN, (2,), dtype=torch.int64, device="cpu")
    if isinstance(given, torch.Tensor):
        if given.dtype != torch.int64 or given.shape != (2,):
            raise ValueError(
                f"rng_state: dtype {given.dtype}, shape {tuple(given.shape)}; allowed: (seed, "
                "offset), or an int64 tensor of shape (2,), in host memory or where q is"
            )
        return given
    # int64 with the same bits.
    state = [x - 2**64 if x >= 2**63 else x for x in problems.rng_state(dropout_p, given)]
    return torch.tensor(state, dtype=torch.int64, device="cpu")
