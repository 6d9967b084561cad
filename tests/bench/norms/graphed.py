# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Long rows in a captured graph beside the same calls as they are made, by the installed package.

    python3 -m tests.bench.norms.graphed [--hidden 131072]

Microseconds of the GPU a call of 2^27 elements of bfloat16, the median of some rounds of calls one
after the other: eager; in a graph; and in a graph whose calls got no barrier, as those that are
captured ahead of the first eager one, which deal rows out in advance.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import aiter_attn
import torch
from absl import app, flags
from aiter_attn._core.adapters import torch as torch_adapter

ELEMENTS = 1 << 27
CALLS, ROUNDS = 10, 9

_HIDDEN = flags.DEFINE_multi_integer(
    "hidden", [8192, 16384, 32768, 65536, 131072], "row lengths", lower_bound=1
)


def captured(call: Callable[[], Any]) -> Callable[[], None]:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    return graph.replay


def microseconds(round_of_calls: Callable[[], Any]) -> float:
    """Of a call."""
    round_of_calls()
    times = []
    for _ in range(ROUNDS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        round_of_calls()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / CALLS)
    return statistics.median(times)


def main(_argv: Sequence[str]) -> None:
    for hidden in _HIDDEN.value:
        x = torch.randn(ELEMENTS // hidden, hidden, device="cuda").bfloat16()
        gamma, beta = (torch.randn(hidden, device="cuda").bfloat16() for _ in range(2))
        for name, call in (
            ("rms_norm", lambda x=x, gamma=gamma: aiter_attn.rms_norm_fwd(x, gamma)),
            ("layer_norm", lambda x=x, w=gamma, b=beta: aiter_attn.layer_norm_fwd(x, w, b)),
            ("softmax", lambda x=x: aiter_attn.softmax_fwd(x)),
        ):
            call()

            def eager(call: Callable[[], Any] = call) -> None:
                for _ in range(CALLS):
                    call()

            with mock.patch.object(torch_adapter.Adapter, "_barrier_of_graph", lambda *_: None):
                without = captured(call)
            times = [microseconds(way) for way in (eager, captured(call), without)]
            shown = ", ".join(f"{us:.1f}" for us in times)
            print(f"{name} {hidden}: {shown}", flush=True)


if __name__ == "__main__":
    app.run(main)
