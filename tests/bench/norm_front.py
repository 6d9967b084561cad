# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Norms of torch tensors beside torch's own: `./bazelw run //tests/bench:norm_front`.

Eight rows of 64 columns, where the computation is next to nothing, in host memory or, by
`--device=cuda`, of an NVIDIA GPU. Processor time of this process, the least of some runs, in turn
with torch's own functions; with ours where no call is remembered and operators are called as torch
calls them; with a Function of torch's that has a derivative in Python and does nothing; and with
both prepared passes, one after the other and without torch's engine.
"""

from __future__ import annotations

from typing import Any

import aiter_attn
import aiter_attn.torch
import torch
from absl import app, flags
from aiter_attn.torch import _norms
from torch.nn import functional

from tests.bench import calls

_RUNS = flags.DEFINE_integer("runs", 15, "of each call; the least counts", lower_bound=1)
_CALLS = flags.DEFINE_integer("calls", 500, "in a run", lower_bound=1)
_DEVICE = flags.DEFINE_enum("device", "cpu", ["cpu", "cuda"], "of the tensors")
_HIDDEN = 64


class Unprepared:
    """In the place of an operation's prepared calls: none is remembered."""

    def signature(self, *given: Any) -> None: ...
    def run(self, *given: Any) -> None: ...
    def run_unwatched(self, *given: Any) -> None: ...


def unprepared(function: Any) -> Any:
    """The function without calls that were prepared, and without the short way to an operator."""
    kept: dict[str, Any] = dict(_norms._CALLS)
    none: dict[str, Any] = dict.fromkeys(kept, Unprepared())

    def call(*arguments: Any) -> Any:
        is_watched = _norms.is_watched
        _norms._CALLS.update(none)
        _norms.is_watched = lambda tensors: True
        try:
            return function(*arguments)
        finally:
            _norms.is_watched = is_watched
            _norms._CALLS.update(kept)

    return call


class Nothing(torch.autograd.Function):
    """Results without work: the least that a derivative in Python costs."""

    @staticmethod
    def forward(ctx: Any, *tensors: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(*tensors)
        return torch.empty_like(tensors[0])

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> Any:
        return tuple(torch.empty_like(x) for x in ctx.saved_tensors)


def passes(
    name: str, tensors: list[torch.Tensor | None], numbers: tuple[Any, ...], gradient: torch.Tensor
) -> calls.Call:
    """Both passes of an operation whose calls are remembered. tensors: all of the forward pass."""
    forward, backward = _norms._CALLS[name], _norms._CALLS[name.removesuffix("_fwd") + "_bwd"]

    def call() -> Any:
        y, *others = forward.run(*tensors, *numbers)
        if name == "softmax":
            return backward.run_unwatched(gradient, y, *numbers)
        *statistics, h = others  # h: of a residual
        x, gamma = tensors[:2]
        return backward.run_unwatched(gradient, x, gamma, *statistics, h, numbers[-1], True)

    return call


def main(argv: list[str]) -> int:
    if len(argv) > 1:
        raise app.UsageError(f"unexpected: {' '.join(argv[1:])}")
    torch.set_num_threads(1)
    # Not torch.set_default_device, which is a mode that watches every call.
    device = _DEVICE.value
    x, gradient = torch.zeros(8, _HIDDEN, device=device), torch.ones(8, _HIDDEN, device=device)
    gamma = torch.ones(_HIDDEN, device=device)
    leaf, weight = x.clone().requires_grad_(), gamma.clone().requires_grad_()
    shape = (_HIDDEN,)
    functions: dict[str, tuple[Any, Any, list[torch.Tensor], list[torch.Tensor], calls.Call]] = {
        "rms_norm": (
            aiter_attn.rms_norm,
            lambda x, gamma: functional.rms_norm(x, shape, gamma, 1e-6),
            [x, gamma],
            [leaf, weight],
            passes("rms_norm_fwd", [x, gamma, None], (1e-6, False), gradient),
        ),
        "layer_norm": (
            aiter_attn.layer_norm,
            lambda x, gamma: functional.layer_norm(x, shape, gamma, None, 1e-5),
            [x, gamma],
            [leaf, weight],
            passes("layer_norm_fwd", [x, gamma, None, None], (1e-5, False), gradient),
        ),
        "softmax": (
            aiter_attn.softmax,
            lambda x: functional.softmax(x, -1),
            [x],
            [leaf],
            passes("softmax", [x, None], (1.0, False), gradient),
        ),
    }

    def forward(function: Any, tensors: list[torch.Tensor]) -> calls.Call:
        return lambda: function(*tensors)

    def both(function: Any, leaves: list[torch.Tensor]) -> calls.Call:
        return lambda: torch.autograd.grad(function(*leaves), leaves, gradient)

    rows = []
    for name, (ours, torchs, tensors, leaves, alone) in functions.items():
        alls = {
            "forward": {
                "ours": forward(ours, tensors),
                "torch": forward(torchs, tensors),
                "unprepared": forward(unprepared(ours), tensors),
            },
            "forward and backward": {
                "ours": both(ours, leaves),
                "torch": both(torchs, leaves),
                "without work": both(Nothing.apply, leaves),
                "passes alone": alone,
            },
        }
        for kind, everyone in alls.items():
            for call in everyone.values():
                call()  # the first call is remembered, which is not counted
            mine, *others = calls.least(list(everyone.values()), _RUNS.value, _CALLS.value)
            for peer, us in zip(list(everyone)[1:], others, strict=True):
                rows.append((f"{name}: {kind}", peer, mine, us))
    print(calls.table(rows))
    return 0


if __name__ == "__main__":
    app.run(main)
