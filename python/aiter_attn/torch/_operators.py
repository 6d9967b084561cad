# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The making of operators of torch.ops.aiter_attn, and the common part of their kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, NoReturn

import torch

from aiter_attn._core.errors import UnsupportedError
from aiter_attn.torch._watched import is_watched

__all__ = [
    "Short",
    "function",
    "numbers_of",
    "operator",
    "restored",
    "rows",
    "run",
    "run_unwatched",
    "save",
]


class Short(NamedTuple):
    """The ways of calls that nothing watches: by the kernel, and with a derivative by function()'s
    result; None: by the operator."""

    kernel: Callable[..., Any]
    differentiable: Callable[..., Any] | None


_UINT64: Final = 2**64 - 1
_SHORT: Final[dict[Any, Short]] = {}  # of operators
_LIBRARY: Final = torch.library.Library("aiter_attn", "DEF")
# The fake kernels are right, and the last dimension stays contiguous in compiled code.
_TAGS: Final = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order)


def operator(
    schema: str,
    kernel: Callable[..., Any],
    fake: Callable[..., Any],
    setup_context: Callable[..., None] | None = None,
    backward: Callable[..., Any] | None = None,
) -> Any:
    """The operator of a schema in which no argument has a default; torch leaves such out.

    Without a backward pass of its own, or of what it changes in place, derivatives are refused.
    A result that the kernel has not, None, is an empty tensor of the operator's.
    """
    name = schema.partition("(")[0]
    qualified = f"aiter_attn::{name}"
    _LIBRARY.define(schema, tags=_TAGS)
    # The kernel refuses devices that it does not serve.
    _LIBRARY.impl(name, _without_none(kernel), "CompositeExplicitAutograd")
    torch.library.register_fake(qualified, fake, lib=_LIBRARY)
    made = getattr(torch.ops.aiter_attn, name).default
    if not made._schema.is_mutable:  # torch registers no derivatives of those
        torch.library.register_autograd(
            qualified, backward or _no_derivative(name), setup_context=setup_context, lib=_LIBRARY
        )
    way = None
    if setup_context is not None and backward is not None:

        def forward(ctx: Any, *arguments: Any) -> Any:
            results = kernel(*arguments)
            setup_context(ctx, arguments, results)
            return results

        way = function(name, forward, backward)
    _SHORT[made] = Short(kernel, way)
    return made


def _without_none(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        results = kernel(*arguments)
        if not isinstance(results, tuple):
            return results
        return tuple(results[0].new_empty(0) if x is None else x for x in results)

    return call


def function(
    name: str, forward: Callable[..., Any], backward: Callable[..., Any]
) -> Callable[..., Any]:
    """The way into an autograd.Function of these passes."""
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    made: Any = type(name, (torch.autograd.Function,), methods)
    # Function.apply looks for transforms, of which there are none, in Python.
    apply: Callable[..., Any] = super(torch.autograd.Function, made).apply
    return apply


def run(operator: Any, arguments: Sequence[Any], tensors: Sequence[Any]) -> Any:
    """operator(*arguments). tensors: all tensors among the arguments; None where one is not given.

    torch's way to an operator, and what it registers for an operator's derivatives, take longer
    than all else that a small call needs.
    """
    if is_watched(tensors):
        return operator(*arguments)
    return run_unwatched(operator, arguments, tensors)


def run_unwatched(
    operator: Any,
    arguments: Sequence[Any],
    tensors: Sequence[Any],
    short: Short | None = None,
) -> Any:
    """run() where nothing watches. short: the ways of the call, if others than the operator's."""
    kernel, differentiable = short or _SHORT[operator]
    if torch.is_grad_enabled() and _requires_grad(tensors):
        # torch refuses second derivatives with an operator's own error.
        return (differentiable or operator)(*arguments)
    return kernel(*arguments)


def _requires_grad(tensors: Sequence[Any]) -> bool:
    for tensor in tensors:  # noqa: SIM110  # a generator takes twice as long
        if tensor is not None and tensor.requires_grad:
            return True
    return False


def _no_derivative(name: str) -> Callable[..., NoReturn]:
    def refuse(*_: Any) -> NoReturn:
        raise UnsupportedError(
            f"aiter_attn::{name}: has no derivative; call under torch.no_grad(), and "
            "torch.autograd.grad with create_graph=False"
        )

    return refuse


def save(
    ctx: Any, inputs: Sequence[Any], outputs: Sequence[torch.Tensor], constant: Sequence[int]
) -> None:
    """Keeps all that restored() gives. constant: the places of outputs without derivative."""
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*(outputs[place] for place in constant))
    ctx.numbers = [None if isinstance(x, torch.Tensor) else x for x in inputs]
    ctx.save_for_backward(*(x if isinstance(x, torch.Tensor) else None for x in inputs), *outputs)


def restored(ctx: Any) -> tuple[list[Any], list[torch.Tensor]]:
    """The inputs and the outputs of the call that save() got."""
    saved, numbers = list(ctx.saved_tensors), ctx.numbers
    inputs = [n if x is None else x for x, n in zip(saved, numbers, strict=False)]
    return inputs, saved[len(numbers) :]


def numbers_of(rng_state: torch.Tensor | None, q: torch.Tensor) -> Any:
    """rng_state as the package takes it: what lies in host memory as numbers. Raises
    UnsupportedError where a graph would replay them."""
    if rng_state is None or rng_state.device.type != "cpu":
        return rng_state
    if q.is_cuda and torch.cuda.is_current_stream_capturing():
        raise UnsupportedError(
            "rng_state: in host memory while a graph is captured, whose every replay would drop "
            "the same weights; pass an int64 tensor on the GPU, and write to it between replays"
        )
    seed, offset = rng_state.tolist()
    return seed & _UINT64, offset & _UINT64


def rows(tensor: torch.Tensor | None) -> Any:
    """The tensor, or a copy whose last dimension is contiguous, as the library needs it."""
    if tensor is None or tensor.dim() == 0 or tensor.stride(-1) == 1:
        return tensor
    return tensor.contiguous()
