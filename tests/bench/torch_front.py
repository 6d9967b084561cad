# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""What a call costs beside its computation, from torch:

    ./bazelw run --config=cache --//toolchains/python:abi=cp313 //tests/bench:torch_front

One token of one head, in host memory. Processor time of this process, the least of some runs; each
beside the same call of an operator that is registered as ours are, and makes its results and no
more. It is measured in turn with it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import aiter_attn
import torch
from aiter_attn.torch import _mha, _operators

_RUNS = 25
_CALLS = 1000
_OPTIONS = (None, None, None, 0.0, None, False, -1, -1, 0.0, False)


def microseconds(call: Callable[[], object]) -> float:
    """Processor time of a call."""
    before = time.process_time()
    for _ in range(_CALLS):
        call()
    return (time.process_time() - before) / _CALLS * 1e6


def least(*calls: Callable[[], object]) -> list[float]:
    """Of each call, in turn, so that what else the machine does sways all alike."""
    times = [[microseconds(call) for call in calls] for _ in range(_RUNS)]
    return [min(column) for column in zip(*times, strict=True)]


def without_work() -> Callable[..., Any]:
    """An operator with the schema, the fake kernel and the backward pass of mha_fwd."""

    def forward(q: Any, *_: Any) -> Any:
        return q.new_empty((1, 1, 1, 64)), q.new_empty((1, 1, 1))

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _operators.save(ctx, inputs, output, constant=[1])

    def backward(ctx: Any, dout: Any, _: Any) -> Any:
        (q, k, v, *rest), _ = _operators.restored(ctx)
        return tuple(x.new_empty(x.shape) for x in (q, k, v)) + (None,) * len(rest)

    schema = str(_mha.mha_fwd._schema).removeprefix("aiter_attn::mha_fwd")
    return _operators.operator(f"without_work{schema}", forward, forward, setup_context, backward)


def main() -> int:
    torch.set_num_threads(1)
    q = torch.zeros(1, 1, 1, 64)
    learned = q.clone().requires_grad_()
    nothing = without_work()

    def gradient(function: Callable[..., Any]) -> Callable[[], object]:
        def both() -> object:
            out = function(learned, learned, learned)
            return torch.autograd.grad(out, learned, out.detach())

        return both

    def compiled(function: Callable[..., Any]) -> Callable[[], object]:
        made = torch.compile(function, fullgraph=True, backend="aot_eager")
        return lambda: made(q, q, q)

    def plain(*tensors: Any) -> Any:
        return nothing(*tensors, *_OPTIONS)[0]

    attention = aiter_attn.flash_attn_func
    rows = [
        ("forward", least(lambda: attention(q, q, q), lambda: plain(q, q, q))),
        ("forward and backward", least(gradient(attention), gradient(plain))),
        ("compiled forward", least(compiled(attention), compiled(plain))),
    ]
    print(f"torch {torch.__version__}: flash_attn_func beside an operator without work")
    print(f"{'call':<24}{'us':>8}{'without work':>16}{'difference':>12}{'ratio':>8}")
    for name, (ours, theirs) in rows:
        more = ours - theirs
        print(f"{name:<24}{ours:>8.1f}{theirs:>16.1f}{more:>12.1f}{ours / theirs:>8.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
