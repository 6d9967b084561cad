# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention on the CPU beside torch's: `./bazelw run --config=cache //tests/bench:cpu`, and
`cpu_newest` with the newest torch, where this machine can have it.

Forward and backward of one shape, by mha_fwd and mha_bwd here (sums in double), and there by
scaled_dot_product_attention and its gradients (sums in float32). The calls are taken in turn, so
that other load of the machine sways all alike. The least of all runs counts, of the time that
passed and of that of all processors.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import aiter_attn
import torch
from absl import app, flags

_BATCH = flags.DEFINE_integer("batch", 2, "sequences", lower_bound=1)
_HEADS = flags.DEFINE_integer("heads", 8, "heads", lower_bound=1)
_SEQLEN = flags.DEFINE_integer("seqlen", 1024, "queries, and keys", lower_bound=1)
_HEAD_SIZE = flags.DEFINE_integer("head_size", 64, "elements of a head", lower_bound=1)
_CAUSAL = flags.DEFINE_bool("causal", False, "with a causal mask")
_DTYPES = flags.DEFINE_list("dtypes", ["float32", "bfloat16", "float16"], "of q, k and v")
_RUNS = flags.DEFINE_integer("runs", 10, "of each call; the least counts", lower_bound=1)

_Call = Callable[[], Any]


class Times(NamedTuple):
    """Milliseconds of one call: those that passed, and those of all processors."""

    passed: float
    processors: float


def calls(dtype: torch.dtype) -> dict[str, tuple[_Call, _Call]]:
    """For each pass ours and torch's, which compute the same."""
    shape = (_BATCH.value, _HEADS.value, _SEQLEN.value, _HEAD_SIZE.value)
    torch.manual_seed(0)
    *theirs, of_out = (torch.randn(shape).to(dtype) for _ in range(4))
    # In the same memory, heads outermost; of results, too.
    q, k, v, dout = (x.transpose(1, 2) for x in (*theirs, of_out))
    mask = {"causal": _CAUSAL.value}
    out, lse = aiter_attn.mha_fwd(
        q, k, v, out=torch.empty(shape, dtype=dtype).transpose(1, 2), **mask
    )
    gradients = {
        name: torch.empty(shape, dtype=dtype).transpose(1, 2) for name in ("dq", "dk", "dv")
    }
    attend = torch.nn.functional.scaled_dot_product_attention

    def forward() -> torch.Tensor:
        with torch.no_grad():
            return attend(*theirs, is_causal=_CAUSAL.value)

    differentiable = [x.clone().requires_grad_() for x in theirs]
    their_out = attend(*differentiable, is_causal=_CAUSAL.value)

    def backward() -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(their_out, differentiable, of_out, retain_graph=True)

    return {
        "forward": (lambda: aiter_attn.mha_fwd(q, k, v, out=out, lse=lse, **mask)[0], forward),
        "backward": (
            lambda: aiter_attn.mha_bwd(dout, q, k, v, out, lse, **mask, **gradients),
            backward,
        ),
    }


def least(of_pass: tuple[_Call, _Call], runs: int) -> tuple[Times, Times]:
    """The times of both calls, taken in turn."""
    times: list[list[Times]] = [[], []]
    for _ in range(runs):
        for mine, call in zip(times, of_pass, strict=True):
            before = Times(time.perf_counter(), time.process_time())
            call()
            after = Times(time.perf_counter(), time.process_time())
            mine.append(Times(*(1e3 * (b - a) for a, b in zip(before, after, strict=True))))
    ours, theirs = (Times(*map(min, zip(*mine, strict=True))) for mine in times)
    return ours, theirs


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        sys.exit(f"{argv[1]}: unexpected argument; allowed: options, see --help")
    known = ("float32", "bfloat16", "float16")
    for name in _DTYPES.value:
        if name not in known:
            sys.exit(f"--dtypes: {name}; allowed: {', '.join(known)}")
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    print(f"{'':<20}{'passed, ms':>22}{'ratio':>8}{'processors, ms':>22}{'ratio':>8}")
    for name in _DTYPES.value:
        for title, of_pass in calls(getattr(torch, name)).items():
            ours, theirs = least(of_pass, _RUNS.value)
            row = f"{name + ' ' + title:<20}"
            for mine, other in zip(ours, theirs, strict=True):
                row += f"{mine:>10.1f} : {other:<9.1f}{mine / other:>8.2f}"
            print(row, flush=True)


if __name__ == "__main__":
    app.run(main)
