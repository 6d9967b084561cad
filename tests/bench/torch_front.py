# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The cost of a call of torch's front: `./bazelw run --config=cache //tests/bench:torch_front`.

One token of one head, in host memory. Processor time of this process, the least of some runs, in
turn with two peers that compute nothing:

  - an operator of torch.library with the schema of ours, which makes its results and leaves them
    empty: what the framework takes for itself;
  - flash-attn's own Python modules over a flash_attn_2_cuda that makes empty results.

Compiled: by aot_eager, which needs no C++ compiler.
"""

from __future__ import annotations

import sys
import types
from typing import Any, Final

import aiter_attn
import aiter_attn.torch
import torch
from absl import app, flags

from tests.bench import calls

_RUNS = flags.DEFINE_integer("runs", 15, "of each call; the least counts", lower_bound=1)
_CALLS = flags.DEFINE_integer("calls", 500, "in a run", lower_bound=1)

# The arguments that mha_fwd's operator gets behind q, k and v for a call without options.
_NO_OPTIONS: Final = (None, None, None, None, 0.0, None, False, -1, -1, 0.0, False)
_NO_GRADIENTS: Final = (None,) * len(_NO_OPTIONS)
_LIBRARY: Final = torch.library.Library("bench", "DEF")


def _define(like: str, kernel: Any, fake: Any) -> Any:
    """An operator with the schema of ours of that name."""
    ours = getattr(torch.ops.aiter_attn, like).default
    _LIBRARY.define(str(ours._schema).removeprefix("aiter_attn::"), tags=tuple(ours.tags))
    _LIBRARY.impl(like, kernel, "CompositeExplicitAutograd")
    torch.library.register_fake(f"bench::{like}", fake, lib=_LIBRARY)
    return getattr(torch.ops.bench, like).default


def without_work() -> Any:
    """The operator that computes nothing, with a backward pass that does not either."""

    def forward(q: Any, *_: Any) -> Any:
        return q.new_empty(q.shape), q.new_empty(q.shape[:-1], dtype=torch.float32)

    def backward(dout: Any, out: Any, lse: Any, bias_grad: bool, q: Any, *_: Any) -> Any:
        return *(q.new_empty(q.shape) for _ in range(3)), q.new_empty(0), q.new_empty(0)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[:3], *output)

    def differentiate(ctx: Any, dout: Any, _: Any) -> Any:
        q, k, v, out, lse = ctx.saved_tensors
        *gradients, _, _ = backward_operator(dout, out, lse, False, q, k, v, *_NO_OPTIONS)
        return *gradients, *_NO_GRADIENTS

    backward_operator = _define("mha_bwd", backward, backward)
    operator = _define("mha_fwd", forward, forward)
    torch.library.register_autograd(
        "bench::mha_fwd", differentiate, setup_context=setup_context, lib=_LIBRARY
    )
    return lambda q, k, v: operator(q, k, v, *_NO_OPTIONS)[0]


def flash_attn() -> Any:
    """flash-attn's flash_attn_func, whose kernels are replaced by none."""

    def forward(q: Any, *_: Any) -> Any:
        lse = q.new_empty(q.shape[:-1], dtype=torch.float32)
        return q.new_empty(q.shape), lse, q.new_empty(0), q.new_empty(2, dtype=torch.int64)

    def backward(*given: Any) -> Any:
        lse, *gradients = given[5:9]
        return *gradients, torch.empty_like(lse)

    extension: Any = types.ModuleType("flash_attn_2_cuda")
    extension.fwd, extension.bwd = forward, backward
    sys.modules[extension.__name__] = extension
    from flash_attn import flash_attn_interface

    # Its operators serve GPUs alone: here the same functions serve host memory.
    for definition in (
        flash_attn_interface._flash_attn_forward,
        flash_attn_interface._flash_attn_backward,
    ):
        definition.register_kernel("cpu", definition._init_fn)
    return flash_attn_interface.flash_attn_func


def main(argv: list[str]) -> int:
    if len(argv) > 1:
        raise app.UsageError(f"unexpected: {' '.join(argv[1:])}")
    torch.set_num_threads(1)
    x = torch.zeros(1, 1, 1, 64)
    leaves = [torch.zeros_like(x, requires_grad=True) for _ in range(3)]
    gradient = torch.ones_like(x)
    peers = {
        "operator without work": without_work(),
        "flash-attn without kernels": flash_attn(),
    }

    def forward(function: Any) -> calls.Call:
        return lambda: function(x, x, x)

    def both(function: Any) -> calls.Call:
        return lambda: torch.autograd.grad(function(*leaves), leaves, gradient)

    def compiled(function: Any) -> calls.Call:
        made = torch.compile(function, backend="aot_eager", fullgraph=True)
        return lambda: made(x, x, x)

    rows = []
    for name, made in (
        ("forward", forward),
        ("forward and backward", both),
        ("compiled forward", compiled),
    ):
        everyone = [made(function) for function in (aiter_attn.flash_attn_func, *peers.values())]
        for call in everyone:
            call()  # compiling and remembering are not counted
        ours, *theirs = calls.least(everyone, _RUNS.value, _CALLS.value)
        for peer, us in zip(peers, theirs, strict=True):
            rows.append((f"torch: {name}", peer, ours, us))
    print(calls.table(rows))
    return 0


if __name__ == "__main__":
    app.run(main)
